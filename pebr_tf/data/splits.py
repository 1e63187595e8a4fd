"""Splits clicks into train, calibrate and test; equal rows always go to the same split.

    pair    a pair (query, item) is held out by its hash
    time    the latest clicks are held out
    query   whole queries are held out

The held-out clicks of a query go either to calibrate or to test, so that a cut-off is never tested
on a query that it was tuned on. With `pair` and `time` the other clicks of the query go to train.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.config import Split
from pebr_tf.errors import UserError

# With fewer held-out queries, a confidence interval covers almost every recall.
LEAST_QUERIES = 10
NAMES = ("train", "calibrate", "test")
TRAIN, CALIBRATE, TEST = range(3)
# Mixed into the hash, so that the two draws are independent.
HELD_OUT, SIDE = 1, 2
MAX_STRETCHES = 1 << 22


def assign(
    split: Split, query: pa.Array, item: pa.Array, time: np.ndarray, begins: int | None = None
) -> np.ndarray:
    """[M] int8, the index into NAMES of each click, from queries and items [M] as text.

    Queries that differ in case or width alone go together: the towers read them alike. Only "time"
    uses `time`, [M] seconds, and `begins`, the first second that is held out; see `held_out_from`.
    """
    share = split.calibrate + split.test
    encoded = query.dictionary_encode()
    folded = pc.utf8_lower(pc.utf8_normalize(encoded.dictionary, "NFKC"))
    query = folded.take(encoded.indices)
    calibrates = _uniform(split.seed, SIDE, query) < split.calibrate / share
    if split.by == "time":
        if begins is None:
            raise ValueError("a split by time requires the second that it begins at.")
        held_out = time >= begins
    elif split.by == "query":
        held_out = _uniform(split.seed, HELD_OUT, query) < share
    else:
        held_out = _uniform(split.seed, HELD_OUT, query, item) < share
    return np.where(held_out, np.where(calibrates, CALIBRATE, TEST), TRAIN).astype(np.int8)


def check_splits(split: Split, rows: dict[str, int], queries: int, held_out: int) -> None:
    """Checks that every split has a click, and enough queries are held out.

    `rows` are the rows with clicks by split, `queries` the queries with clicks, `held_out` those of
    calibrate and test; either may be any number from `LEAST_QUERIES` on where there are more.
    """
    if all(rows.get(name) for name in NAMES):
        require_held_out(held_out)
        return
    shares = (1 - split.calibrate - split.test, split.calibrate, split.test)
    wanted = ", ".join(f"{n} {share:.0%}" for n, share in zip(NAMES, shares, strict=True))
    received = ", ".join(f"{name} {rows.get(name, 0):,}" for name in NAMES)
    empty = " and ".join(name for name in NAMES if not rows.get(name))
    few = queries < LEAST_QUERIES
    advice = "" if few else ": more queries, or another split.by or seed, may help"
    count = f"{queries} quer{'y' if queries == 1 else 'ies'} with clicks"
    need = f"; the log has {count}: at least {LEAST_QUERIES} are needed" if few else ""
    raise UserError(
        f"Every split must have a click (split.by: {split.by}; {wanted}), but none is in {empty}"
        f"{advice}. Received rows with clicks: {received}{need}."
    )


def require_held_out(queries: int) -> None:
    """Raises UserError if fewer than LEAST_QUERIES queries have held-out clicks."""
    if queries < LEAST_QUERIES:
        raise UserError(
            f"the splits calibrate and test must have at least {LEAST_QUERIES} queries with clicks "
            f"that were held out. Received: {queries}."
        )


def held_out_from(split: Split, time: np.ndarray) -> int:
    """The first second of the held-out clicks; clicks of one second stay together.

    `time` holds the seconds [N] of all clicks, or of a uniform sample.
    """
    return int(np.quantile(time, 1 - split.calibrate - split.test, method="higher")) + 1


@dataclass(frozen=True)
class TimeCounts:
    """Clicks per stretch of time: all that a split by time needs to know of a large log.

    Stretches are a second long until there would be more than `MAX_STRETCHES`; then their length
    doubles. The result does not depend on how the clicks are divided and merged.

    Attributes:
      stretch: [S] int64, number of each stretch that has clicks, ascending.
      clicks: [S] int64.
      length: Seconds of a stretch.
    """

    stretch: np.ndarray
    clicks: np.ndarray
    length: int = 1

    @classmethod
    def of(cls, time: np.ndarray) -> TimeCounts:
        """Counts clicks at these seconds [M]."""
        return cls(*np.unique(np.asarray(time, np.int64), return_counts=True))._bounded()

    def and_also(self, other: TimeCounts) -> TimeCounts:
        length = max(self.length, other.length)
        return _summed([self._at(length), other._at(length)], length)._bounded()

    def held_out_from(self, split: Split) -> int:
        """As the function `held_out_from`, with the precision of a stretch."""
        ends = np.cumsum(self.clicks)
        rank = np.ceil((ends[-1] - 1) * (1 - split.calibrate - split.test))
        last = self.stretch[np.searchsorted(ends, rank, side="right")]
        return (int(last) + 1) * self.length

    def _at(self, length: int) -> TimeCounts:
        return TimeCounts(self.stretch // (length // self.length), self.clicks, length)

    def _bounded(self) -> TimeCounts:
        counts = self
        while len(counts.stretch) > MAX_STRETCHES:
            longer = 2 * counts.length
            counts = _summed([counts._at(longer)], longer)
        return counts


def _summed(parts: Sequence[TimeCounts], length: int) -> TimeCounts:
    stretches = np.concatenate([part.stretch for part in parts])
    stretch, inverse = np.unique(stretches, return_inverse=True)
    clicks = np.zeros(len(stretch), np.int64)
    np.add.at(clicks, inverse, np.concatenate([part.clicks for part in parts]))
    return TimeCounts(stretch, clicks, length)


def _uniform(seed: int, purpose: int, *columns: pa.Array) -> np.ndarray:
    """[M] numbers in [0, 1) that depend on the texts, the seed and the purpose only."""
    state = _mixed(np.full(len(columns[0]), seed * 4 + purpose, np.uint64))
    with np.errstate(over="ignore"):
        for column in columns:
            state = _mixed(state ^ hashes(column))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(state: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every input bit affects every output bit."""
    with np.errstate(over="ignore"):
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def hashes(column: pa.Array) -> np.ndarray:
    """[M] uint64 hashes of texts [M]; collisions are negligible."""
    encoded = column.dictionary_encode()
    digests = [
        hashlib.blake2b(word.encode("utf-8"), digest_size=8).digest()
        for word in encoded.dictionary.to_pylist()
    ]
    found = np.frombuffer(b"".join(digests), "<u8")
    return found[encoded.indices.to_numpy(zero_copy_only=False)]

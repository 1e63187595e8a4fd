"""One index over several: shards of disjoint items, asked side by side, merged into one answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np

from pebr_tf.retrieval.exact import BACKGROUND_SAMPLE, sample_of
from pebr_tf.retrieval.result import RangeResult, merge
from pebr_tf.retrieval.searcher import Request, Searcher, check_positive
from pebr_tf.retrieval.vectors import item_ids

# Callers whose shards are all asked at once; those beyond wait for a thread.
CONCURRENT_CALLERS = 16

Answer = TypeVar("Answer")


class ShardUnavailable(RuntimeError):
    """A part of an index gave no answer; the sentence says which and why."""


class ShardedSearcher(Searcher):
    """Asks every shard the same and merges what they answer."""

    def __init__(
        self, shards: Sequence[Searcher], dead_shard: Literal["error", "partial"] = "error"
    ):
        """Makes the searcher; the shards stay the caller's to close.

        Args:
          shards: At least one, of disjoint items, one dimension, and ids of one kind.
          dead_shard: What to do when some, not all, shards raise `ShardUnavailable`: "error" raises
            one that names them; "partial" gives the answer of the others, marked as `partial`.
            Counts and samples are then also those of the others.

        Raises:
          ValueError: No shard, another `dead_shard`, shards of different dimensions, or some with
            text ids and some with integers.
          ShardUnavailable: A shard cannot say its dimension, and `dead_shard` does not bear that.
        """
        if not shards:
            raise ValueError("shards must be at least one searcher. Received: none.")
        if dead_shard not in ("error", "partial"):
            raise ValueError(f"dead_shard must be error or partial. Received: {dead_shard!r}.")
        self._shards = tuple(shards)
        self._bears_dead = dead_shard == "partial"
        self._threads = ThreadPoolExecutor(CONCURRENT_CALLERS * len(shards), "shard")
        self._sampled: tuple[list[tuple[int, np.ndarray]], np.ndarray] | None = None
        dimensions, _ = self._ask(lambda shard: shard.dimension)
        if len(set(dimensions)) > 1:
            raise ValueError(
                "shards must have one dimension. "
                f"Received: {', '.join(str(dimension) for dimension in dimensions)}."
            )
        self._dimension = dimensions[0]
        self._check_id_kinds()

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def id_dtype(self) -> np.dtype:
        return np.result_type(*self._id_dtypes())

    @property
    def background(self) -> np.ndarray:
        parts, _ = self._read(lambda shard: (len(shard), shard.background))
        last = self._sampled
        if last is None or not _same_parts(last[0], parts):
            last = self._sampled = (parts, combined_sample(parts))
        return last[1]

    def __len__(self) -> int:
        return sum(self._read(len)[0])

    def _search(self, request: Request) -> RangeResult:
        parts, partial = self._ask(
            lambda shard: shard.search(
                request.queries, request.thresholds, request.top_k, request.max_results
            )
        )
        # A shard without items may take its ids for integers, and a merge with text would widen it.
        no_ids = np.empty(0, self.id_dtype)
        parts = [part if len(part.item_ids) else replace(part, item_ids=no_ids) for part in parts]
        return merge(parts, request.top_k, request.max_results, partial)

    def _expected_count(self, queries: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        counts, _ = self._ask(lambda shard: shard.expected_count(queries, thresholds))
        return np.sum(counts, axis=0)

    def _ask(self, call: Callable[[Searcher], Answer]) -> tuple[list[Answer], bool]:
        """What the shards answer, asked all at once, and whether some did not."""
        first, *others = self._shards
        futures = [self._threads.submit(_outcome, call, shard) for shard in others]
        return self._settle([_outcome(call, first), *(future.result() for future in futures)])

    def _read(self, call: Callable[[Searcher], Answer]) -> tuple[list[Answer], bool]:
        """Like `_ask`, one after the other: for what a shard knows without work."""
        return self._settle([_outcome(call, shard) for shard in self._shards])

    def _settle(self, outcomes: list[Answer | ShardUnavailable]) -> tuple[list[Answer], bool]:
        answers, dead = [], []
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome, ShardUnavailable):
                dead.append(f"Shard {number}: {outcome}")
            else:
                answers.append(outcome)
        if dead and not (self._bears_dead and answers):
            raise ShardUnavailable(
                f"{len(dead)} of {len(outcomes)} shards gave no answer. {' '.join(dead)}"
            )
        return answers, bool(dead)

    def _id_dtypes(self) -> list[np.dtype]:
        """Those of the shards with items, for an empty one may not know; else of all."""
        known, _ = self._read(lambda shard: (len(shard), shard.id_dtype))
        return [dtype for size, dtype in known if size] or [dtype for _, dtype in known]

    def _check_id_kinds(self) -> None:
        dtypes = self._id_dtypes()
        if len({dtype.kind for dtype in dtypes}) > 1:
            raise ValueError(
                "shards must all have text ids, or all integers. "
                f"Received: {', '.join(str(dtype) for dtype in dtypes)}."
            )


def _outcome(call: Callable[[Searcher], Answer], shard: Searcher) -> Answer | ShardUnavailable:
    try:
        return call(shard)
    except ShardUnavailable as error:
        return error


def _same_parts(left: list[tuple[int, np.ndarray]], right: list[tuple[int, np.ndarray]]) -> bool:
    return len(left) == len(right) and all(
        old[0] == new[0] and old[1] is new[1] for old, new in zip(left, right, strict=True)
    )


def combined_sample(parts: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
    """A sample [M, n] of several corpora, in which each has the share of its items.

    Args:
      parts: The number of items and a uniform random sample [m, n] of each corpus.
    """
    known = [(size, sample) for size, sample in parts if len(sample)]
    if not known:
        return parts[0][1]
    sizes = np.array([size for size, _ in known])
    items = sizes.sum()
    # The corpus that is sampled most thinly says how thin all must be.
    rate = min(len(sample) / size for size, sample in known)
    largest = max(BACKGROUND_SAMPLE, *(len(sample) for _, sample in known))
    wanted = min(largest, rate * items)
    ends = np.round(np.cumsum(sizes) * (wanted / items)).astype(np.int64)
    shares = np.diff(ends, prepend=0)
    return np.concatenate(
        [sample_of(sample, share) for (_, sample), share in zip(known, shares, strict=True)]
    )


def split(ids: Any, vectors: Any, shards: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The ids and vectors of each shard, in the order they came in.

    Args:
      ids: [N] different integers or texts; None numbers the items from 0.
      vectors: [N, n] item vectors, taken as they are.
      shards: The number of parts; a part may be empty.

    Raises:
      ValueError: Another number of ids, an id twice, or fewer than one shard.
    """
    vectors = np.asarray(vectors)
    ids = item_ids(ids, len(vectors))
    home = shard_of(ids, shards)
    return [(ids[home == shard], vectors[home == shard]) for shard in range(shards)]


def shard_of(ids: np.ndarray, shards: int) -> np.ndarray:
    """[N] int64 shard that each id [N] lives in: of the id and the number of shards alone.

    The same in every process, and for a text in an array of whatever width.
    """
    check_positive("shards", shards)
    if ids.dtype.kind == "U":
        width = max(1, ids.dtype.itemsize // 4)
        letters = np.ascontiguousarray(ids, f"=U{width}").view(np.uint32).reshape(-1, width)
        mixed = np.zeros(len(ids), np.uint64)
        for column in letters.T:
            # FNV-1a; the zeros that fill a text up must not count.
            mixed = np.where(column, (mixed ^ column) * np.uint64(0x100000001B3), mixed)
    else:
        mixed = ids.astype(np.uint64)
    # The finaliser of SplitMix64: ids that follow each other must not share a shard.
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed % np.uint64(shards)).astype(np.int64)

"""Cut-offs by level as one operation: probe, level, threshold, and a longer search where needed.

The maths is that of `pebr_tf.distributions.level`, in NumPy: a call of a TensorFlow graph costs
more than the probe of a query. The two are held together by a test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pebr_tf.distributions.logit import UNIT_EPSILON, Family, require_family
from pebr_tf.retrieval.result import RangeResult, assemble, splits_of, take_rows
from pebr_tf.retrieval.searcher import (
    DEFAULT_LIMIT,
    Searcher,
    check_positive,
    check_thresholds,
)
from pebr_tf.retrieval.vectors import reject_rows, unit_vectors

# A sampled item this close to the probe's last may be the last itself, scored another way.
ROUNDING = np.float32(1e-6)
LOG_2 = np.float32(np.log(2))
# Queries of one step over the sample, so that what it works on stays in the cache.
BLOCK = 32


@dataclass(frozen=True)
class LevelCut:
    """What ends a list: an item is in iff its logit is `cutoff` or more above the query's level.

    Attributes:
      cutoff: c, one number for all queries or [B].
      level_temperature: T of the level, from 0 to infinity.
      family: Which logit the towers were trained with.
      probe_size: Items of the small search that the level is taken from.
      floor: Items that a query always gets.
    """

    cutoff: float | np.ndarray
    level_temperature: float = 1.0
    family: Family = "beta"
    probe_size: int = 100
    floor: int = 1

    def __post_init__(self) -> None:
        require_family(self.family)
        check_positive("probe_size", self.probe_size)
        if np.isnan(self.cutoff).any():
            raise ValueError(f"cutoff must be a number. Received: {self.cutoff}.")
        if not self.level_temperature >= 0:
            raise ValueError(
                f"level_temperature must be a number from 0 to infinity. Received: "
                f"{self.level_temperature}."
            )
        if not 0 <= self.floor <= self.probe_size:
            raise ValueError(
                f"floor must be from 0 to probe_size ({self.probe_size}). Received: {self.floor}."
            )


@dataclass(frozen=True)
class LevelResult:
    """What `search_by_level` found.

    Attributes:
      items: The items, with the thresholds that the levels gave.
      levels: [B] float32.
      extended: [B] bool, true where the probe was too short.
    """

    items: RangeResult
    levels: np.ndarray
    extended: np.ndarray


def search_by_level(
    searcher: Searcher,
    queries: Any,
    tau: Any,
    cut: LevelCut,
    limit: int = DEFAULT_LIMIT,
) -> LevelResult:
    """Every item that is `cut.cutoff` above its query's level.

    A small search for the best `probe_size` items gives the level, with the background sample
    standing for all the others, and with it the threshold. A query whose list ends inside the
    probe is done; only the others are searched again, down to their thresholds.

    Args:
      searcher: Any index.
      queries: [B, n] vectors.
      tau: [B] temperatures, above 0.
      cut: What ends a list.
      limit: Items of a query at most; a row that it cuts is `truncated`.

    Raises:
      ValueError: As `Searcher.search`, or temperatures that are not [B] numbers above 0.
    """
    queries = unit_vectors("queries", queries, searcher.dimension)
    tau = np.asarray(tau, np.float32)
    if tau.shape != (len(queries),):
        raise ValueError(
            f"tau must be {len(queries)} numbers, one a query. Received: shape {tau.shape}."
        )
    reject_rows("tau", "be finite and above 0", ~((tau > 0) & np.isfinite(tau)))
    cutoff = np.asarray(cut.cutoff, np.float32)
    if cutoff.shape not in ((), tau.shape):
        raise ValueError(
            f"cutoff must be one number or {len(queries)}, one a query. "
            f"Received: shape {cutoff.shape}."
        )
    check_positive("limit", limit)
    probe = searcher.probe(queries, cut.probe_size)
    if not len(probe.scores):
        nothing = np.zeros(len(queries), np.float32)
        return LevelResult(probe, nothing, np.zeros(len(queries), bool))

    sample = _Sample(searcher, queries, tau, cut, probe.scores[probe.row_splits[:-1]])
    levels, thresholds = _thresholds(sample, tau, cutoff, cut, probe)
    rows, found = searcher.extend(queries, thresholds, probe, limit)
    # Another search may score the last of the floor otherwise, in its last digits, or miss it.
    short = found.counts < np.minimum(cut.floor, probe.counts[rows])
    if short.any():
        found, rows = take_rows(found, np.flatnonzero(~short)), rows[~short]
    extended = np.zeros(len(queries), bool)
    extended[rows] = True
    done = np.flatnonzero(~extended)
    items = _cut(take_rows(probe, done), thresholds[done])
    if len(rows):
        # A probe of few leaves misses some of the best: the level rises a little with the rest.
        tail = take_rows(probe, rows)
        tail = tail.keep(tail.scores < thresholds[rows][tail.rows()])
        best = _followed_by(found.head(cut.probe_size), tail).head(cut.probe_size)
        some = cutoff if cutoff.ndim == 0 else cutoff[rows]
        refined = _thresholds(sample.take(rows), tau[rows], some, cut, best)
        levels[rows] = refined[0]
        raised = np.maximum(refined[1], thresholds[rows])
        found = _cut(found, check_thresholds(raised, len(rows)))
        items = assemble([(done, items), (rows, found)])
    over = items.counts > limit
    items = replace(items.head(limit), truncated=items.truncated | over)
    return LevelResult(items, levels, extended)


def _followed_by(first: RangeResult, second: RangeResult) -> RangeResult:
    """In each row the items of `first`, then those of `second`, which all score less."""
    rows = np.concatenate([first.rows(), second.rows()])
    order = np.argsort(rows, kind="stable")
    return replace(
        first,
        row_splits=splits_of(first.counts + second.counts),
        item_ids=np.concatenate([first.item_ids, second.item_ids])[order],
        scores=np.concatenate([first.scores, second.scores])[order],
    )


def _cut(result: RangeResult, thresholds: np.ndarray) -> RangeResult:
    """The items at or above thresholds [B]."""
    passed = result.scores >= thresholds[result.rows()]
    return replace(result, thresholds=thresholds).keep(passed)


class _Sample:
    """The background sample as B queries see it; what does not depend on the best items."""

    def __init__(
        self, searcher: Searcher, queries: np.ndarray, tau: np.ndarray, cut: LevelCut, best: Any
    ):
        """Looks at the sample; the highest logit of `best` [B] keeps exponentials in range."""
        self.size = len(searcher)
        self.tau, self.cut = tau, cut
        self.scores = queries @ searcher.background.T
        self.top = _logits(best[:, None], tau, cut.family)[:, 0]
        self.mass = np.empty_like(self.scores)
        for begin in range(0, len(queries), BLOCK):
            part = slice(begin, begin + BLOCK)
            self._weigh(self.scores[part], tau[part], self.top[part], self.mass[part])

    def _weigh(
        self, scores: np.ndarray, tau: np.ndarray, top: np.ndarray, mass: np.ndarray
    ) -> None:
        """Writes what each sampled item adds to the level of its query into `mass`."""
        level_temperature = self.cut.level_temperature
        _logits(scores, tau, self.cut.family, out=mass)
        if 0 < level_temperature < np.inf:
            mass -= top[:, None]
            if level_temperature != 1:
                mass /= np.float32(level_temperature)
            # What lies far above the best is one of the best, and taken out of every sum.
            with np.errstate(over="ignore"):
                np.exp(mass, out=mass)

    def _weigh_anew(self, rows: np.ndarray, top: np.ndarray) -> None:
        """Weighs against the higher logits `top` of `rows`: the first search missed their best."""
        mass = np.empty((len(rows), self.mass.shape[1]), np.float32)
        self._weigh(self.scores[rows], self.tau[rows], top, mass)
        self.top[rows], self.mass[rows] = top, mass

    def take(self, rows: np.ndarray) -> _Sample:
        """The sample as the queries at `rows` see it."""
        other = object.__new__(_Sample)
        other.__dict__.update(self.__dict__)
        for name in ("tau", "scores", "top", "mass"):
            setattr(other, name, getattr(self, name)[rows])
        return other

    def levels(self, best: RangeResult) -> np.ndarray:
        """[B] levels, with the sample standing for all but the best items.

        See `distributions.probe_level`.
        """
        level_temperature = self.cut.level_temperature
        scores = np.full((len(best), int(best.counts.max())), np.nan, np.float32)
        scores[np.arange(scores.shape[1]) < best.counts[:, None]] = best.scores
        logits = _logits(scores, self.tau, self.cut.family)
        top = logits[:, 0]
        if level_temperature == 0:
            return top
        risen = (top > self.top + level_temperature).nonzero()[0]
        if len(risen):
            self._weigh_anew(risen, top[risen])
        # Few sampled items are among the best: those are taken out of the sum, and put back.
        last = best.scores[best.row_splits[1:] - 1][:, None] - ROUNDING
        among = (self.scores >= last).ravel().nonzero()[0]
        masses = self.mass.ravel()
        taken = masses[among]
        masses[among] = 0
        mass = self.mass.sum(axis=1).astype(np.float64)
        masses[among] = taken
        sampled = self.scores.shape[1]
        count = sampled - np.bincount(among // sampled, minlength=len(best))
        others = np.where(count > 0, self.size - best.counts, 0)
        mass *= others / np.maximum(count, 1)
        total = best.counts + others
        if np.isinf(level_temperature):
            return ((np.nansum(logits, axis=1) + mass) / total).astype(np.float32)
        mass *= np.exp((self.top - top) / level_temperature)
        mass += np.nansum(np.exp((logits - top[:, None]) / level_temperature), axis=1)
        return (top + level_temperature * np.log(mass / total)).astype(np.float32)


def _thresholds(
    sample: _Sample, tau: np.ndarray, cutoff: np.ndarray, cut: LevelCut, best: RangeResult
) -> tuple[np.ndarray, np.ndarray]:
    """[B] levels, and [B] thresholds that leave at least the floor, given the best items."""
    levels = sample.levels(best)
    thresholds = _cosines(cutoff + levels, tau, cut.family)
    if cut.floor:
        kept = best.row_splits[:-1] + np.minimum(cut.floor, best.counts) - 1
        thresholds = np.minimum(thresholds, best.scores[kept])
    return levels, thresholds


def _logits(
    cosines: np.ndarray, tau: np.ndarray, family: Family, out: np.ndarray | None = None
) -> np.ndarray:
    """Logits of cosines [B, M]; see `distributions.relevance_logit`."""
    if family == "exponential":
        return np.divide(cosines, tau[:, None], out=out)
    unit = np.add(cosines, 1, out=out)
    lowest = np.float32(2 * UNIT_EPSILON)
    tangents = None
    if not unit.min(initial=1) > lowest:
        tangents = np.minimum(unit / lowest - 1, 0)
        np.maximum(unit, lowest, out=unit)
    logits = np.log(unit, out=unit)
    logits -= LOG_2
    if tangents is not None:
        logits += tangents
    return np.multiply(logits, 1 / tau[:, None], out=logits)


def _cosines(logits: np.ndarray, tau: np.ndarray, family: Family) -> np.ndarray:
    """Cosines of logits [B]; see `distributions.cosine_of_logit`."""
    if family == "exponential":
        return (logits * tau).astype(np.float32)
    with np.errstate(over="ignore"):
        return (2 * np.exp(logits * tau) - 1).astype(np.float32)

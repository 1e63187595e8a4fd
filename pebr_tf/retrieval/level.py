"""Search by level as one operation: probe, level, threshold, and a longer search where needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.distributions.level_numpy import cosines_of, level_of_mass, logits_of, masses_of
from pebr_tf.distributions.logit import Family
from pebr_tf.retrieval.one_pass import search_in_one_pass
from pebr_tf.retrieval.result import RangeResult, assemble, splits_of, take_rows
from pebr_tf.retrieval.searcher import DEFAULT_LIMIT, Searcher, check_thresholds
from pebr_tf.retrieval.vectors import unit_vectors

# A sampled item this close to the probe's last item may be that item, scored in another way.
ROUNDING = np.float32(1e-6)
# Queries per step over the sample, so that the step's arrays stay in the cache.
BLOCK = 32
# Queries times items times dimensions up to which one pass over all vectors takes less time than a
# probe and a longer search: one query on 46,000 items of 128 dimensions, two on 23,000.
ONE_PASS = 6_000_000


@dataclass(frozen=True)
class LevelCut:
    """Where lists end: an item is kept iff its logit is at least `cutoff` above the query's level.

    Attributes:
      cutoff: c, one number for all queries or [B].
      level_temperature: T of the level, from 0 to infinity.
      probe_size: Items of the small search that gives the level, at least `floor`.
    """

    cutoff: float | np.ndarray
    level_temperature: float = 1.0
    family: Family = "beta"
    probe_size: int = Cutoff.probe_size
    floor: int = 1


@dataclass(frozen=True)
class LevelResult:
    """The result of `search_by_level`.

    Attributes:
      levels: [B] float32.
      extended: [B] bool, true where the list goes beyond the probe.
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

    Few queries of a small catalogue get their exact levels and their items in one pass over all
    vectors. Otherwise a small search for the best `probe_size` items gives the level, with the
    background sample representing all other items, and the level gives the threshold. Only queries
    whose lists do not end inside the probe are searched again, down to their thresholds.

    Queries are [B, n], their temperatures `tau` [B]. A row that `limit` shortens is `truncated`.
    """
    queries = unit_vectors("queries", queries, searcher.dimension)
    tau = np.asarray(tau, np.float32)
    cutoff = np.broadcast_to(np.asarray(cut.cutoff, np.float32), tau.shape)
    if 0 < len(queries) * searcher.vectors.size <= ONE_PASS:
        level_temperature, floor = cut.level_temperature, cut.floor
        items, levels = search_in_one_pass(
            searcher, queries, tau, cutoff, level_temperature, cut.family, floor, limit
        )
        return LevelResult(items, levels, np.zeros(len(queries), bool))
    probe = searcher.probe(queries, cut.probe_size)
    if not len(probe.scores):
        nothing = np.zeros(len(queries), np.float32)
        return LevelResult(probe, nothing, np.zeros(len(queries), bool))

    sample = _Sample.of(searcher, queries, tau, cut, probe.scores[probe.row_splits[:-1]])
    levels, thresholds = sample.levels_and_thresholds(cutoff, probe)
    rows, found = searcher.extend(queries, thresholds, probe, limit)
    # The second search may round the last item of the floor differently, or miss it.
    short = found.counts < np.minimum(cut.floor, probe.counts[rows])
    if short.any():
        found, rows = take_rows(found, np.flatnonzero(~short)), rows[~short]
    extended = np.zeros(len(queries), bool)
    extended[rows] = True
    done = np.flatnonzero(~extended)
    items = _cut(take_rows(probe, done), thresholds[done])
    if len(rows):
        # A probe of few leaves misses some of the best items. With them, the level rises a little.
        tail = take_rows(probe, rows)
        tail = tail.keep(tail.scores < thresholds[rows][tail.rows()])
        best = _followed_by(found.head(cut.probe_size), tail).head(cut.probe_size)
        levels[rows], refined = sample.take(rows).levels_and_thresholds(cutoff[rows], best)
        raised = np.maximum(refined, thresholds[rows])
        found = _cut(found, check_thresholds(raised, len(rows)))
        items = assemble([(done, items), (rows, found)])
    return LevelResult(items.limited(limit), levels, extended)


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
    passed = result.scores >= thresholds[result.rows()]
    return replace(result, thresholds=thresholds).keep(passed)


@dataclass(frozen=True)
class _Sample:
    """The background sample of B queries: everything that does not depend on the best items.

    Attributes:
      tau: [B] temperatures.
      scores: [B, S] cosines of the sampled items.
      top: [B] logits that `masses` are relative to.
      masses: [B, S] what each sampled item adds to the level of its query.
    """

    cut: LevelCut
    size: int
    tau: np.ndarray
    scores: np.ndarray
    top: np.ndarray
    masses: np.ndarray

    @classmethod
    def of(
        cls,
        searcher: Searcher,
        queries: np.ndarray,
        tau: np.ndarray,
        cut: LevelCut,
        best: np.ndarray,
    ) -> _Sample:
        """The sample of a searcher; `best` [B] are the best cosines found so far."""
        scores = queries @ searcher.background.T
        top = logits_of(best[:, None], tau, cut.family)[:, 0]
        sample = cls(cut, len(searcher), tau, scores, top, np.empty_like(scores))
        for begin in range(0, len(queries), BLOCK):
            part = slice(begin, begin + BLOCK)
            sample._weigh(scores[part], tau[part], top[part], sample.masses[part])
        return sample

    def _weigh(self, scores: np.ndarray, tau: np.ndarray, top: np.ndarray, out: np.ndarray) -> None:
        logits_of(scores, tau, self.cut.family, out=out)
        if self.cut.level_temperature > 0:
            masses_of(out, top, self.cut.level_temperature, out=out)

    def take(self, rows: np.ndarray) -> _Sample:
        taken = {name: getattr(self, name)[rows] for name in ("tau", "scores", "top", "masses")}
        return replace(self, **taken)

    def levels(self, best: RangeResult) -> np.ndarray:
        """[B] levels from the best items exactly, with the sample representing all others.

        Sampled items that score at least the last of the best are among the best already; the
        others share the weight of the items that the search did not return.
        """
        level_temperature = self.cut.level_temperature
        scores = np.full((len(best), int(best.counts.max())), np.nan, np.float32)
        scores[np.arange(scores.shape[1]) < best.counts[:, None]] = best.scores
        logits = logits_of(scores, self.tau, self.cut.family)
        top = logits[:, 0]
        if level_temperature == 0:
            return top
        risen = (top > self.top + level_temperature).nonzero()[0]
        if len(risen):
            # Relative to the higher logits of items that the first search missed.
            masses = np.empty((len(risen), self.masses.shape[1]), np.float32)
            self._weigh(self.scores[risen], self.tau[risen], top[risen], masses)
            self.top[risen], self.masses[risen] = top[risen], masses
        # Few sampled items are among the best: set those to 0, sum, and restore them.
        last = best.scores[best.row_splits[1:] - 1][:, None] - ROUNDING
        among = (self.scores >= last).ravel().nonzero()[0]
        flat = self.masses.ravel()
        taken = flat[among]
        flat[among] = 0
        mass = self.masses.sum(axis=1).astype(np.float64)
        flat[among] = taken
        sampled = self.scores.shape[1]
        count = sampled - np.bincount(among // sampled, minlength=len(best))
        others = np.where(count > 0, self.size - best.counts, 0)
        mass *= others / np.maximum(count, 1)
        if not np.isinf(level_temperature):
            mass *= np.exp((self.top - top) / level_temperature)
        mass += np.nansum(masses_of(logits, top, level_temperature), axis=1)
        levels = level_of_mass(top, mass, best.counts + others, level_temperature)
        return levels.astype(np.float32)

    def levels_and_thresholds(
        self, cutoff: np.ndarray, best: RangeResult
    ) -> tuple[np.ndarray, np.ndarray]:
        """[B] levels and [B] thresholds that leave at least the floor, for cut-offs [B]."""
        levels = self.levels(best)
        thresholds = cosines_of(cutoff + levels, self.tau, self.cut.family)
        if self.cut.floor:
            kept = best.row_splits[:-1] + np.minimum(self.cut.floor, best.counts) - 1
            thresholds = np.minimum(thresholds, best.scores[kept])
        return levels, thresholds

"""The best items of each query and its levels, from one pass over the catalogue.

Every policy is monotone in the cosine within one query, so a comparison needs only the best M
items. The levels are those of the whole catalogue, for many level temperatures at once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pebr_tf.distributions.level_numpy import levels_at, logits_of
from pebr_tf.distributions.logit import Family
from pebr_tf.metrics.ranked import Ranks

# Cosines per block, which should stay in the cache. A block of a large catalogue has 16 queries all
# the same, because each block reads the catalogue once, unless this exceeds the second number.
BLOCK, LARGEST_BLOCK = 1 << 20, 1 << 24
# Most candidates in memory, 80 MB.
MOST_CANDIDATES = 20_000_000
# Queries per step where a step needs a copy of the candidates.
ROWS = 256
# Scores in the sample that selects candidates, and how far beyond the M-th best it looks.
SELECTION_SAMPLE, SELECTION_MARGIN, SELECTION_EXTRA = 16_384, 1.5, 16
# Levels of a larger catalogue come from the candidates and a sample of the other items.
EXACT_LEVELS_UP_TO = 100_000
SAMPLE = 20_000


@dataclass(frozen=True)
class QueryVectors:
    """Embedded queries.

    Attributes:
      vectors: [Q, n] float32 unit vectors.
      tau: [Q] float32 temperatures.
      strata: [Q] indices into `pebr_tf.metrics.strata.STRATA`.
      breadth: [Q] number of different items that were clicked in the training split, or None;
        policies of experiments use it.
      frequency: [Q] clicks in the training split, or None.
      known_share: [Q] share of the query's words that training queries have, or None.
      unfamiliar: [Q] whether the release knows too few of them, or None.
      alpha, beta: [Q] the Beta law of each query's relevant items, or None.
    """

    vectors: np.ndarray
    tau: np.ndarray
    strata: np.ndarray
    breadth: np.ndarray | None = None
    frequency: np.ndarray | None = None
    known_share: np.ndarray | None = None
    unfamiliar: np.ndarray | None = None
    alpha: np.ndarray | None = None
    beta: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.tau)

    def part(self, queries: np.ndarray) -> QueryVectors:
        """Some queries, by mask or by index."""
        columns = {name: value for name, value in vars(self).items() if value is not None}
        return QueryVectors(**{name: value[queries] for name, value in columns.items()})


@dataclass(frozen=True)
class ClickedPairs:
    """Different pairs of a query and a clicked item.

    Attributes:
      rows: [P] indices of the queries.
      items: [P] indices of the items in the catalogue; -1 for an item that it lacks.
    """

    rows: np.ndarray
    items: np.ndarray


@dataclass(frozen=True)
class Candidates:
    """The best M items of Q queries.

    Attributes:
      cosines: [Q, M] float32, falling in a row; -inf where a row has fewer.
      levels: Levels [Q] float32 by level temperature.
      seen: [P] whether a relevant pair is also in the training split.
      totals: [Q] number of relevant items, at least 1.
      known: Ranks of the pairs of the training split.
      corpus_size: N, the number of items in the catalogue.
      sample_levels: [Q] float32 levels from the items that the query model holds, or None.
    """

    cosines: np.ndarray
    queries: QueryVectors
    family: Family
    levels: dict[float, np.ndarray]
    relevant: Ranks
    seen: np.ndarray
    totals: np.ndarray
    known: Ranks
    corpus_size: int
    sample_levels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.cosines)

    @property
    def depth(self) -> int:
        """M, the most items that a list can have."""
        return int(self.cosines.shape[1])

    @property
    def tau(self) -> np.ndarray:
        """[Q] temperatures."""
        return self.queries.tau

    def truncated(self, counts: np.ndarray) -> np.ndarray:
        """[Q] whether lists of `counts` [Q] items end because there are no more candidates."""
        return (counts >= self.depth) & (self.depth < self.corpus_size)

    @functools.cached_property
    def logits(self) -> np.ndarray:
        """[Q, M] float32 relevance logits, falling in a row; -inf where there is no candidate."""
        logits = logits_of(self.cosines, self.tau, self.family)
        # Rounding may swap two neighbours.
        return np.minimum.accumulate(logits, axis=1, out=logits)

    def unseen(self) -> Candidates:
        """The candidates without the pairs of the training split, in the items and in the truth.

        Queries without another relevant item are left out. Levels are still those of all items.
        """
        known = self.known.ranks < self.depth
        known_rows, known_ranks = self.known.rows[known], self.known.ranks[known]
        rows, ranks = self.relevant.rows[~self.seen], self.relevant.ranks[~self.seen]
        moved = ranks.copy()
        cosines = np.full_like(self.cosines, -np.inf)
        for begin in range(0, len(self), ROWS):
            part = self.cosines[begin : begin + ROWS]
            kept = np.ones(part.shape, bool)
            here = slice(*np.searchsorted(known_rows, [begin, begin + ROWS]))
            kept[known_rows[here] - begin, known_ranks[here]] = False
            rank = np.cumsum(kept, axis=1) - 1
            some, columns = np.nonzero(kept)
            cosines[begin + some, rank[some, columns]] = part[some, columns]
            first, last = np.searchsorted(rows, [begin, begin + ROWS])
            found = first + np.flatnonzero(ranks[first:last] < self.depth)
            moved[found] = rank[rows[found] - begin, ranks[found]]
        seen = np.bincount(self.relevant.rows[self.seen], minlength=len(self))
        totals = self.totals - seen
        return replace(
            self,
            cosines=cosines,
            relevant=Ranks(rows, moved),
            seen=np.zeros(len(rows), bool),
            totals=totals,
            known=Ranks(self.known.rows[:0], self.known.ranks[:0]),
        ).part(totals > 0)

    def part(self, queries: np.ndarray) -> Candidates:
        """The queries where `queries` [Q] is true."""
        return replace(
            self,
            cosines=self.cosines[queries],
            queries=self.queries.part(queries),
            levels={each: level[queries] for each, level in self.levels.items()},
            relevant=self.relevant.part(queries),
            seen=self.seen[queries[self.relevant.rows]],
            totals=self.totals[queries],
            known=self.known.part(queries),
            sample_levels=None if self.sample_levels is None else self.sample_levels[queries],
        )


def candidate_depth(queries: int, items: int, average_k: Sequence[int], limit: int) -> int:
    """M, the number of candidates to keep per query.

    This is as many as the limit and the memory allow, and at least four times the largest average.
    """
    affordable = max(4 * max(average_k), MOST_CANDIDATES // max(queries, 1))
    return min(items, limit, affordable)


def collect_candidates(
    corpus: np.ndarray,
    queries: QueryVectors,
    relevant: ClickedPairs,
    family: Family,
    level_temperatures: Sequence[float],
    depth: int,
    known: ClickedPairs | None = None,
) -> Candidates:
    """Compares all queries with all items, float32 unit vectors [N, n], in blocks.

    Each query has a relevant item; one that the catalogue lacks counts in the totals. Levels are
    computed at finite level temperatures, from 0. `depth` is M, at most N. `known` are pairs of the
    training split, for `Candidates.unseen`.
    """
    if not len(corpus) or not 1 <= depth <= len(corpus):
        raise ValueError(
            f"depth must be from 1 to the number of items. Received: {depth} of {len(corpus)}."
        )
    totals = np.bincount(relevant.rows, minlength=len(queries))
    if not totals.all():
        raise ValueError("every query must have a relevant item.")
    known = known or ClickedPairs(np.zeros(0, np.int64), np.zeros(0, np.int64))
    pairs = [_sorted(relevant), _sorted(known)]
    ranks: list[list[np.ndarray]] = [[], []]
    cosines = np.empty((len(queries), depth), np.float32)
    levels = np.empty((len(queries), len(level_temperatures)), np.float32)
    sample = _sample(len(corpus))
    step = _block(len(corpus))
    rank_of = np.full((min(step, len(queries)), len(corpus)), depth, np.int32)
    for begin in range(0, len(queries), step):
        part = slice(begin, begin + step)
        scores = queries.vectors[part] @ corpus.T
        np.clip(scores, -1, 1, out=scores)
        order = _best(scores, depth)
        cosines[part] = np.take_along_axis(scores, order, axis=1)
        levels[part] = _levels(
            scores, cosines[part], queries.tau[part], family, level_temperatures, sample
        )
        ranked = rank_of[: len(scores)]
        np.put_along_axis(ranked, order, np.arange(depth, dtype=np.int32)[None], axis=1)
        for found, some in zip(ranks, pairs, strict=True):
            first, last = np.searchsorted(some.rows, [begin, begin + len(scores)])
            items = some.items[first:last]
            rank = ranked[some.rows[first:last] - begin, items]
            found.append(np.where(items < 0, depth, rank))
        np.put_along_axis(ranked, order, np.int32(depth), axis=1)
    return Candidates(
        cosines=cosines,
        queries=queries,
        family=family,
        levels=dict(
            zip(map(float, level_temperatures), np.ascontiguousarray(levels.T), strict=True)
        ),
        relevant=Ranks(pairs[0].rows, np.concatenate(ranks[0])),
        seen=_among(*pairs),
        totals=totals,
        known=Ranks(pairs[1].rows, np.concatenate(ranks[1])),
        corpus_size=len(corpus),
    )


def levels_of(
    corpus: np.ndarray, queries: QueryVectors, family: Family, level_temperature: float
) -> np.ndarray:
    """[Q] float32 levels over items [N, n], without keeping candidates."""
    levels = np.empty(len(queries), np.float32)
    step = _block(len(corpus))
    for begin in range(0, len(queries), step):
        part = slice(begin, begin + step)
        scores = np.clip(queries.vectors[part] @ corpus.T, -1, 1)
        logits = logits_of(scores, queries.tau[part], family)
        levels[part] = levels_at(logits, [level_temperature])[:, 0]
    return levels


def _levels(
    scores: np.ndarray,
    best: np.ndarray,
    tau: np.ndarray,
    family: Family,
    level_temperatures: Sequence[float],
    sample: np.ndarray | None,
) -> np.ndarray:
    """[B, T] levels from all scores [B, N], or from the best [B, M] and a sample of the others."""
    if sample is None:
        return levels_at(logits_of(scores, tau, family), level_temperatures)
    sampled = scores[:, sample]
    others = sampled < best[:, -1:]
    count = others.sum(axis=1, keepdims=True)
    share = (scores.shape[1] - best.shape[1]) / np.maximum(count, 1)
    weights = np.concatenate([np.ones_like(best), others * share.astype(np.float32)], axis=1)
    logits = logits_of(np.concatenate([best, sampled], axis=1), tau, family)
    return levels_at(logits, level_temperatures, weights)


def _block(items: int) -> int:
    return max(1, BLOCK // items, min(16, LARGEST_BLOCK // items))


def _sample(items: int) -> np.ndarray | None:
    if items <= EXACT_LEVELS_UP_TO:
        return None
    return np.sort(np.random.default_rng(0).choice(items, SAMPLE, replace=False))


def _best(scores: np.ndarray, depth: int) -> np.ndarray:
    """[B, M] indices of the best scores [B, N], best first."""
    if depth == scores.shape[1]:
        return np.argsort(-scores, axis=1)
    return np.stack([_best_of(row, depth) for row in scores])


def _best_of(scores: np.ndarray, depth: int) -> np.ndarray:
    """[M] indices of the best scores [N], best first.

    Where most items are out of the question, a sample of the scores shows which ones: to look at
    each score once takes a twentieth of the time of a partition.
    """
    items, chosen = len(scores), None
    sampled = scores[:: max(items // SELECTION_SAMPLE, 1)]
    likely = int(SELECTION_MARGIN * depth * len(sampled) / items) + SELECTION_EXTRA
    if 4 * likely < len(sampled):
        lowest = np.partition(sampled, len(sampled) - likely)[len(sampled) - likely]
        chosen = np.flatnonzero(scores >= lowest)
    if chosen is None or len(chosen) < depth:
        chosen = np.argpartition(scores, items - depth)[items - depth :]
    return chosen[np.argsort(-scores[chosen])[:depth]]


def _among(some: ClickedPairs, others: ClickedPairs) -> np.ndarray:
    width = np.int64(max(some.items.max(initial=0), others.items.max(initial=0)) + 2)
    keys, known = (pairs.rows * width + pairs.items + 1 for pairs in (some, others))
    return np.isin(keys, known) & (some.items >= 0)


def _sorted(pairs: ClickedPairs) -> ClickedPairs:
    order = np.argsort(pairs.rows, kind="stable")
    return ClickedPairs(pairs.rows[order], pairs.items[order])

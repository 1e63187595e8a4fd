"""The best items of each query and its levels, from one pass over the corpus.

Every way to end a list is monotone in the cosine within one query, so the best M items are all that
a comparison needs. The levels are those of the whole corpus, for many level_temperatures at once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from pebr_tf.distributions.logit import Family, relevance_logit, require_family
from pebr_tf.metrics.ranked import Ranks

# Cosines of one block, which should stay in the cache. Of a large corpus 16 queries go together all
# the same, for it is read once a block, unless that is more than the second number.
BLOCK, LARGEST_BLOCK = 1 << 20, 1 << 24
# Candidates held at once, 80 MB.
MOST_CANDIDATES = 20_000_000
# Queries of a step over candidates, where a step needs copies of them.
ROWS = 256
# Of a larger corpus the levels are those of the candidates and of a sample of the others.
EXACT_LEVELS_UP_TO = 100_000
SAMPLE = 20_000


@dataclass(frozen=True)
class QueryVectors:
    """Embedded queries.

    Attributes:
      vectors: [Q, n] float32 unit vectors.
      tau: [Q] float32 temperatures.
      strata: [Q] places in `pebr_tf.metrics.STRATA`.
      breadth: [Q] different items that were clicked in the training split, where that is wanted;
        only `depth_law` and `rank_quantile` look at it.
    """

    vectors: np.ndarray
    tau: np.ndarray
    strata: np.ndarray
    breadth: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not (
            self.tau.shape == self.strata.shape == self.vectors.shape[:1]
        ):
            raise ValueError(
                "vectors, tau and strata must be [Q, n], [Q] and [Q]. Received: "
                f"{self.vectors.shape}, {self.tau.shape} and {self.strata.shape}."
            )
        if self.breadth is not None and self.breadth.shape != self.tau.shape:
            raise ValueError(f"breadth must be [{len(self.tau)}]. Received: {self.breadth.shape}.")

    def __len__(self) -> int:
        return len(self.tau)

    def part(self, queries: np.ndarray) -> QueryVectors:
        """Some queries, by mask or by place."""
        breadth = None if self.breadth is None else self.breadth[queries]
        return QueryVectors(self.vectors[queries], self.tau[queries], self.strata[queries], breadth)


@dataclass(frozen=True)
class ClickedPairs:
    """Different pairs of a query and an item.

    Attributes:
      rows: [P] places of the queries.
      items: [P] places of the items in the corpus; -1 for an item that it lacks.
    """

    rows: np.ndarray
    items: np.ndarray

    @classmethod
    def none(cls) -> ClickedPairs:
        """No pair."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Candidates:
    """The best M items of Q queries.

    Attributes:
      cosines: [Q, M] float32, falling in a row; -inf where a row has fewer.
      queries: The queries.
      family: Which logit the towers were trained with.
      levels: Level temperature to levels [Q] float32.
      relevant: Where the P relevant items are.
      seen: [P] whether a relevant pair is one of the training split, too.
      totals: [Q] relevant items, at least 1.
      known: Where the pairs of the training split are.
      corpus_size: N.
      head_levels: [Q] float32 levels that the level head predicts, where there is one.
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
    head_levels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.cosines)

    @property
    def depth(self) -> int:
        """M, the items that a list can have at most."""
        return int(self.cosines.shape[1])

    @property
    def tau(self) -> np.ndarray:
        """[Q] temperatures."""
        return self.queries.tau

    def capped(self, counts: np.ndarray) -> np.ndarray:
        """[Q] whether lists of `counts` [Q] items end because there are no more candidates."""
        return (counts >= self.depth) & (self.depth < self.corpus_size)

    @functools.cached_property
    def logits(self) -> np.ndarray:
        """[Q, M] float32 relevance logits, falling in a row; -inf where there is no candidate."""
        logits = logits_of(self.cosines, self.tau, self.family)
        # Rounding may turn two neighbours around.
        return np.minimum.accumulate(logits, axis=1, out=logits)

    def breadth_with_levels(self, level_temperatures: Sequence[float]) -> np.ndarray:
        """[Q] breadth of the queries, for policies that look at it and at levels.

        Raises:
          ValueError: The queries have none, or levels at some of `level_temperatures` are missing.
        """
        breadth = self.queries.breadth
        if breadth is None or not set(level_temperatures) <= set(self.levels):
            raise ValueError(
                f"candidates must have a breadth and levels at {level_temperatures}. Received: "
                f"{'no' if breadth is None else 'a'} breadth, levels at {tuple(self.levels)}."
            )
        return breadth

    def unseen(self) -> Candidates:
        """Without the pairs of the training split, neither among the items nor in the truth.

        Queries that have no other relevant item are left out. Levels stay those of the corpus.
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
            place = np.cumsum(kept, axis=1) - 1
            some, columns = np.nonzero(kept)
            cosines[begin + some, place[some, columns]] = part[some, columns]
            first, last = np.searchsorted(rows, [begin, begin + ROWS])
            found = first + np.flatnonzero(ranks[first:last] < self.depth)
            moved[found] = place[rows[found] - begin, ranks[found]]
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
        place = np.cumsum(queries) - 1

        def moved(ranks: Ranks) -> Ranks:
            inside = queries[ranks.rows]
            return Ranks(place[ranks.rows[inside]], ranks.ranks[inside])

        return replace(
            self,
            cosines=self.cosines[queries],
            queries=self.queries.part(queries),
            levels={
                level_temperature: level[queries]
                for level_temperature, level in self.levels.items()
            },
            relevant=moved(self.relevant),
            seen=self.seen[queries[self.relevant.rows]],
            totals=self.totals[queries],
            known=moved(self.known),
            head_levels=None if self.head_levels is None else self.head_levels[queries],
        )


def candidate_depth(queries: int, items: int, average_k: Sequence[int], limit: int) -> int:
    """M, the candidates to keep of each query.

    All that the limit allows, if memory does; of many queries fewer, yet at least four times the
    largest average.

    Args:
      queries: Q.
      items: N.
      average_k: Averages that policies are compared at.
      limit: Items that a list never exceeds.
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
    """Compares all queries with all items, in blocks.

    Args:
      corpus: [N, n] float32 unit vectors.
      queries: The queries, each with a relevant item.
      relevant: The relevant items; one that the corpus lacks counts in the totals.
      family: Which logit the towers were trained with.
      level_temperatures: Level temperatures T to take the levels at, from 0, finite.
      depth: M, at most N.
      known: Pairs of the training split, for `Candidates.unseen`.

    Raises:
      ValueError: An empty corpus, or a query without a relevant item.
    """
    require_family(family)
    if not len(corpus) or not 1 <= depth <= len(corpus):
        raise ValueError(
            f"depth must be from 1 to the number of items. Received: {depth} of {len(corpus)}."
        )
    totals = np.bincount(relevant.rows, minlength=len(queries))
    if not totals.all():
        raise ValueError("every query must have a relevant item.")
    known = known or ClickedPairs.none()
    pairs = [_sorted(relevant), _sorted(known)]
    ranks: list[list[np.ndarray]] = [[], []]
    cosines = np.empty((len(queries), depth), np.float32)
    levels = np.empty((len(queries), len(level_temperatures)), np.float32)
    sample = _sample(len(corpus))
    step = _block(len(corpus))
    for begin in range(0, len(queries), step):
        part = slice(begin, begin + step)
        scores = np.clip(queries.vectors[part] @ corpus.T, -1, 1)
        order = _best(scores, depth)
        cosines[part] = np.take_along_axis(scores, order, axis=1)
        levels[part] = _levels(
            scores, cosines[part], queries.tau[part], family, level_temperatures, sample
        )
        place = np.full(scores.shape, depth, np.int32)
        np.put_along_axis(place, order, np.arange(depth, dtype=np.int32)[None], axis=1)
        for found, some in zip(ranks, pairs, strict=True):
            first, last = np.searchsorted(some.rows, [begin, begin + len(scores)])
            items = some.items[first:last]
            rank = place[some.rows[first:last] - begin, items]
            found.append(np.where(items < 0, depth, rank))
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
    """[Q] float32 levels over the whole corpus [N, n], without keeping candidates."""
    levels = np.empty(len(queries), np.float32)
    step = _block(len(corpus))
    for begin in range(0, len(queries), step):
        part = slice(begin, begin + step)
        scores = np.clip(queries.vectors[part] @ corpus.T, -1, 1)
        logits = logits_of(scores, queries.tau[part], family)
        levels[part] = levels_at(logits, [level_temperature])[:, 0]
    return levels


def logits_of(cosines: np.ndarray, tau: np.ndarray, family: Family) -> np.ndarray:
    """[B, M] float32 logits of cosines [B, M] and temperatures [B]."""
    logits: np.ndarray = relevance_logit(tf.constant(cosines), tau[:, None], family).numpy()
    return logits


def levels_at(
    logits: np.ndarray, level_temperatures: Sequence[float], weights: np.ndarray | None = None
) -> np.ndarray:
    """[B, T] levels at several level_temperatures; each column is `distributions.exact_level` of
    one.

    Args:
      logits: [B, N] float32.
      level_temperatures: T level_temperatures from 0, finite.
      weights: [B, N] items that each stands for; None: 1.
    """
    top = logits.max(axis=1, keepdims=True)
    shifted = logits - top
    scaled = np.empty_like(shifted)
    total = shifted.shape[1] if weights is None else weights.sum(axis=1)
    columns = []
    for level_temperature in level_temperatures:
        if level_temperature == 0:
            columns.append(top[:, 0])
            continue
        np.multiply(shifted, np.float32(1 / level_temperature), out=scaled)
        np.exp(scaled, out=scaled)
        if weights is not None:
            scaled *= weights
        columns.append(top[:, 0] + level_temperature * np.log(scaled.sum(axis=1) / total))
    return np.stack(columns, axis=1)


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
    """Queries of a block."""
    return max(1, BLOCK // items, min(16, LARGEST_BLOCK // items))


def _sample(items: int) -> np.ndarray | None:
    """Places of the items that stand for all of a large corpus."""
    if items <= EXACT_LEVELS_UP_TO:
        return None
    return np.sort(np.random.default_rng(0).choice(items, SAMPLE, replace=False))


def _best(scores: np.ndarray, depth: int) -> np.ndarray:
    """[B, M] places of the best scores [B, N], best first."""
    items = scores.shape[1]
    if depth < items:
        chosen = np.argpartition(scores, items - depth, axis=1)[:, items - depth :]
        inner = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1)
        return np.take_along_axis(chosen, inner, axis=1)
    return np.argsort(-scores, axis=1)


def _among(some: ClickedPairs, others: ClickedPairs) -> np.ndarray:
    """[P] whether each of some pairs is one of the others."""
    width = np.int64(max(some.items.max(initial=0), others.items.max(initial=0)) + 2)
    keys, known = (pairs.rows * width + pairs.items + 1 for pairs in (some, others))
    return np.isin(keys, known) & (some.items >= 0)


def _sorted(pairs: ClickedPairs) -> ClickedPairs:
    order = np.argsort(pairs.rows, kind="stable")
    return ClickedPairs(pairs.rows[order], pairs.items[order])

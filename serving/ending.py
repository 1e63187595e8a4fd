"""Where a list ends: each policy as a search with one cut-off a query.

Every policy scores items and keeps those at or above a cut-off:

    level     logit - level                 by the probe, or by the query model's head
    cdf       logit - logit of cosine 1     the paper's, whose level is not pinned
    score     cosine
    gap       cosine - best cosine
    top_k     -rank, from 0
    nucleus   log(1 - mass)                 the softmax mass of the items before it

The scores are those of `pebr_tf.cutoff.policies`, which calibration goes by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from pebr_tf.distributions.level import level_threshold
from pebr_tf.distributions.logit import Family, relevance_logit
from pebr_tf.retrieval import RangeResult, Searcher
from pebr_tf.retrieval.level import LevelCut, search_by_level
from pebr_tf.retrieval.result import assemble, take_rows
from serving.encoder import Encoded


@dataclass(frozen=True)
class Ending:
    """How lists are ended, the cut-offs aside.

    Attributes:
      level_temperature: T of the level.
      family: Which logit the towers were trained with.
      level_source: "probe" or "head".
      probe_size: Items of the small search that gives the level.
      floor: Items that a query always gets.
    """

    level_temperature: float
    family: Family
    level_source: str
    probe_size: int
    floor: int

    def level_cut(self, cutoff: float | np.ndarray, level_temperature: float) -> LevelCut:
        """The same for `search_by_level`."""
        size = max(self.probe_size, self.floor)
        return LevelCut(cutoff, level_temperature, self.family, size, self.floor)


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
      items: The items.
      levels: [B] the levels that ended the lists, or the head's where none did.
    """

    items: RangeResult
    levels: np.ndarray


def search(
    searcher: Searcher,
    encoded: Encoded,
    policy: str,
    cutoffs: np.ndarray,
    ending: Ending,
    limits: np.ndarray,
) -> Found:
    """The items of B queries whose score by `policy` is at least the cut-off [B].

    Every query gets the floor at least; a row that its limit of items, [B] or one for all, cuts is
    `truncated`.
    """
    limit = int(np.max(limits, initial=1))
    if policy == "level" and ending.level_source == "probe":
        cut = ending.level_cut(cutoffs, ending.level_temperature)
        found = search_by_level(searcher, encoded.embedding, encoded.tau, cut, limit)
        items, levels = found.items, found.levels
    else:
        items = _SEARCHES[policy](searcher, encoded, cutoffs, ending, limit)
        items, levels = _with_floor(searcher, encoded, items, ending.floor), encoded.level
    over = items.counts > limits
    return Found(replace(items.head(limits), truncated=items.truncated | over), levels)


def _by_head(
    searcher: Searcher, encoded: Encoded, cutoffs: np.ndarray, ending: Ending, limit: int
) -> RangeResult:
    thresholds = _cosines(cutoffs, encoded.level, encoded, ending)
    return searcher.search(encoded.embedding, thresholds, limit=limit)


def _by_cdf(
    searcher: Searcher, encoded: Encoded, cutoffs: np.ndarray, ending: Ending, limit: int
) -> RangeResult:
    top = relevance_logit(tf.ones_like(encoded.tau), encoded.tau, ending.family).numpy()
    thresholds = _cosines(cutoffs, top, encoded, ending)
    return searcher.search(encoded.embedding, thresholds, limit=limit)


def _by_score(
    searcher: Searcher, encoded: Encoded, cutoffs: np.ndarray, ending: Ending, limit: int
) -> RangeResult:
    return searcher.search(encoded.embedding, cutoffs, limit=limit)


def _by_gap(
    searcher: Searcher, encoded: Encoded, cutoffs: np.ndarray, ending: Ending, limit: int
) -> RangeResult:
    best = searcher.search(encoded.embedding, top_k=1)
    if not len(best.scores):
        return best
    return searcher.search(encoded.embedding, best.scores + cutoffs, limit=limit)


def _by_rank(
    searcher: Searcher, encoded: Encoded, cutoffs: np.ndarray, ending: Ending, limit: int
) -> RangeResult:
    wanted = np.floor(-cutoffs).astype(np.int64) + 1
    longest = max(int(wanted.max(initial=1)), 1)
    found = searcher.search(encoded.embedding, top_k=longest, limit=limit)
    ranks = np.arange(len(found.scores)) - np.repeat(found.row_splits[:-1], found.counts)
    kept = found.keep(ranks < np.repeat(wanted, found.counts))
    return replace(kept, truncated=np.minimum(wanted, len(searcher)) > limit)


def _by_mass(
    searcher: Searcher, encoded: Encoded, cutoffs: np.ndarray, ending: Ending, limit: int
) -> RangeResult:
    # A cut-off that nothing reaches: the probe gives the level, and no list is searched for.
    cut = ending.level_cut(np.inf, level_temperature=1.0)
    level = search_by_level(searcher, encoded.embedding, encoded.tau, cut).levels
    found = searcher.search(encoded.embedding, top_k=limit, limit=limit)
    rows = found.rows()
    logits = relevance_logit(
        tf.constant(found.scores, tf.float64), encoded.tau[rows].astype(np.float64), ending.family
    )
    mass = np.exp(logits.numpy() - level[rows]) / max(len(searcher), 1)
    total = np.concatenate([[0.0], np.cumsum(mass)])
    before = total[:-1] - np.repeat(total[found.row_splits[:-1]], found.counts)
    # As a share of all: 1 - mass >= exp(c), which needs no logarithm of 0.
    kept = found.keep(1 - before >= np.exp(cutoffs[rows]))
    full = (kept.counts == found.counts) & (found.counts < len(searcher))
    return replace(kept, truncated=full)


_SEARCHES: dict[str, Callable[..., RangeResult]] = {
    "level": _by_head,
    "level_head": _by_head,
    "cdf": _by_cdf,
    "score": _by_score,
    "gap": _by_gap,
    "top_k": _by_rank,
    "nucleus": _by_mass,
}


def _cosines(
    cutoffs: np.ndarray, levels: np.ndarray, encoded: Encoded, ending: Ending
) -> np.ndarray:
    cutoff = tf.constant(cutoffs, tf.float32)
    return level_threshold(cutoff, levels, encoded.tau, ending.family).numpy()


def _with_floor(
    searcher: Searcher, encoded: Encoded, items: RangeResult, floor: int
) -> RangeResult:
    """The same, with the best `floor` items for queries that got fewer."""
    short = items.counts < min(floor, len(searcher))
    if not short.any():
        return items
    rows, others = np.flatnonzero(short), np.flatnonzero(~short)
    best = searcher.search(encoded.embedding[rows], top_k=floor, limit=floor)
    best = replace(best, thresholds=best.scores[best.row_splits[1:] - 1])
    return assemble([(others, take_rows(items, others)), (rows, best)])

"""Cut-offs by level as one operation: probe, level, threshold, and a longer search where needed.

The maths is that of `pebr_tf.distributions.level`, in NumPy: a call of a TensorFlow graph costs
more than the probe of a query. The two are held together by a test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pebr_tf.distributions.logit import UNIT_EPSILON, Family, require_family
from pebr_tf.retrieval.result import RangeResult, assemble
from pebr_tf.retrieval.searcher import DEFAULT_MAX_RESULTS, Searcher, check_positive
from pebr_tf.retrieval.vectors import refuse_rows, unit_vectors

# A sampled item this close to the probe's last may be the last itself, scored another way.
ROUNDING = np.float32(1e-6)


@dataclass(frozen=True)
class LevelCut:
    """What ends a list: an item is in iff its logit is `cutoff` or more above the query's level.

    Attributes:
      cutoff: c, one number for all queries or [B].
      temper: T of the level, from 0 to infinity.
      family: Which logit the towers were trained with.
      probe_size: Items of the small search that the level is taken from.
      floor: Items that a query always gets.
    """

    cutoff: float | np.ndarray
    temper: float = 1.0
    family: Family = "beta"
    probe_size: int = 100
    floor: int = 1

    def __post_init__(self) -> None:
        require_family(self.family)
        check_positive("probe_size", self.probe_size)
        if math.isnan(self.cutoff):
            raise ValueError(f"cutoff must be a number. Received: {self.cutoff}.")
        if not self.temper >= 0:
            raise ValueError(
                f"temper must be a number from 0 to infinity. Received: {self.temper}."
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
    max_results: int = DEFAULT_MAX_RESULTS,
) -> LevelResult:
    """Every item that is `cut.cutoff` above its query's level.

    One search for the best `probe_size` items gives the level, with the background sample standing
    for all the others, and with it the threshold. A query whose list ends inside the probe is
    done; only the others are searched again, down to their thresholds.

    Args:
      searcher: Any index.
      queries: [B, n] vectors.
      tau: [B] temperatures, above 0.
      cut: What ends a list.
      max_results: Items of a query at most; a row that it cuts is `truncated`.

    Raises:
      ValueError: As `Searcher.search`, or temperatures that are not [B] numbers above 0.
    """
    queries = unit_vectors("queries", queries, searcher.dimension)
    tau = np.asarray(tau, np.float32)
    if tau.shape != (len(queries),):
        raise ValueError(
            f"tau must be {len(queries)} numbers, one a query. Received: shape {tau.shape}."
        )
    refuse_rows("tau", "be finite and above 0", ~((tau > 0) & np.isfinite(tau)))
    cutoff = np.asarray(cut.cutoff, np.float32)
    if cutoff.shape not in ((), tau.shape):
        raise ValueError(
            f"cutoff must be one number or {len(queries)}, one a query. "
            f"Received: shape {cutoff.shape}."
        )
    check_positive("max_results", max_results)
    probe = searcher.search(queries, top_k=cut.probe_size, max_results=cut.probe_size)
    if not len(probe.scores):
        nothing = np.zeros(len(queries), np.float32)
        return LevelResult(probe, nothing, np.zeros(len(queries), bool))

    levels = _levels(searcher, queries, tau, cut, probe)
    thresholds = _cosines(cutoff + levels, tau, cut.family)
    if cut.floor:
        kept = probe.row_splits[:-1] + np.minimum(cut.floor, probe.counts) - 1
        thresholds = np.minimum(thresholds, probe.scores[kept])
    last = probe.scores[probe.row_splits[1:] - 1]
    extended = (thresholds < last) & (probe.counts < len(searcher))
    inside = replace(probe, thresholds=thresholds).keep(
        probe.scores >= np.repeat(np.where(extended, np.inf, thresholds), probe.counts)
    )
    rows = np.flatnonzero(extended)
    if len(rows):
        found = searcher.search(queries[rows], thresholds[rows], max_results=max_results)
        done = np.flatnonzero(~extended)
        kept_rows = RangeResult(
            row_splits=np.concatenate([[0], np.cumsum(inside.counts[done])]),
            item_ids=inside.item_ids,
            scores=inside.scores,
            thresholds=thresholds[done],
            expected_counts=probe.expected_counts[done],
            truncated=probe.truncated[done],
            partial=probe.partial,
        )
        inside = assemble([(done, kept_rows), (rows, found)])
    over = inside.counts > max_results
    items = replace(inside.head(max_results), truncated=inside.truncated | over)
    return LevelResult(items, levels, extended)


def _levels(
    searcher: Searcher, queries: np.ndarray, tau: np.ndarray, cut: LevelCut, probe: RangeResult
) -> np.ndarray:
    """[B] levels; see `distributions.probe_level`."""
    width = int(probe.counts.max())
    scores = np.full((len(queries), width), np.nan, np.float32)
    present = np.arange(width) < probe.counts[:, None]
    scores[present] = probe.scores
    best = _logits(scores, tau, cut.family)
    sample_scores = queries @ searcher.background.T
    stands = sample_scores < probe.scores[probe.row_splits[1:] - 1][:, None] - ROUNDING
    sample = _logits(sample_scores, tau, cut.family)
    others = np.maximum(len(searcher) - probe.counts, 0)
    weight = others / np.maximum(np.count_nonzero(stands, axis=1), 1)
    total = probe.counts + np.where(stands.any(axis=1), others, 0)
    if cut.temper == 0:
        return best[:, 0]
    if np.isinf(cut.temper):
        sums = np.nansum(best, axis=1) + weight * np.where(stands, sample, 0).sum(axis=1)
        return (sums / total).astype(np.float32)
    top = best[:, :1]
    mass = np.nansum(np.exp((best - top) / cut.temper), axis=1) + weight * np.where(
        stands, np.exp((sample - top) / cut.temper), 0
    ).sum(axis=1)
    return (top[:, 0] + cut.temper * np.log(mass / total)).astype(np.float32)


def _logits(cosines: np.ndarray, tau: np.ndarray, family: Family) -> np.ndarray:
    """Logits of cosines [B, M]; see `distributions.relevance_logit`."""
    if family == "exponential":
        return cosines / tau[:, None]
    unit = (1 + cosines) / 2
    logarithms = np.log(np.maximum(unit, np.float32(UNIT_EPSILON)))
    tangents = np.minimum(unit / np.float32(UNIT_EPSILON) - 1, 0)
    return (logarithms + tangents) / tau[:, None]


def _cosines(logits: np.ndarray, tau: np.ndarray, family: Family) -> np.ndarray:
    """Cosines of logits [B]; see `distributions.cosine_of_logit`."""
    if family == "exponential":
        return (logits * tau).astype(np.float32)
    with np.errstate(over="ignore"):
        return (2 * np.exp(logits * tau) - 1).astype(np.float32)

"""The boosted rank quantile: how deep a query's clicks lie, learnt without any law.

For each of a few shares p, gradient-boosted trees predict the rank above which a share p of a
query's clicks lies, from what a server knows before it ends a list. In between, the share is linear
in the log of the rank; it is 0 above the best item and 1 at the end of the corpus. The score of an
item is minus the share that a list down to it keeps, so that one cut-off asks the same share of
every query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from experiments.policies.features import breadth_with_levels
from pebr_tf.cutoff.candidates import ROWS, Candidates
from pebr_tf.cutoff.policies.base import Policy

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

SHARES = (0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Level temperatures whose levels are features, and ranks whose cosines are.
LEVEL_TEMPERATURES, RANKS = (0.5, 1.0, 2.0), (10, 100, 1_000)
# Clicks of a query that the trees look at, at most.
CLICKS = 16
# Small trees that see many clicks in a leaf: calibrate queries are few.
_TREES = {"learning_rate": 0.1, "max_iter": 100, "max_leaf_nodes": 8, "min_samples_leaf": 40}


@dataclass(frozen=True, kw_only=True)
class RankQuantilePolicy(Policy):
    """score = minus the share of its clicks that a query keeps with each rank.

    Attributes:
      trees: One model for each of SHARES, from features to the log of the rank, counted from 1.
    """

    name = "rank_quantile"
    title = "boosted rank quantile"

    trees: tuple[HistGradientBoostingRegressor, ...]

    def log_ranks(self, candidates: Candidates) -> np.ndarray:
        """[Q, S] logs of the ranks that keep each of SHARES; they never fall with the share."""
        from threadpoolctl import threadpool_limits

        features = features_of(candidates)
        with threadpool_limits(1):
            predicted = np.stack([tree.predict(features) for tree in self.trees], axis=1)
        limited = np.clip(predicted, 0, np.log(candidates.corpus_size))
        rising: np.ndarray = np.maximum.accumulate(limited, axis=1)
        return rising

    def scores(self, candidates: Candidates) -> np.ndarray:
        ends = self.log_ranks(candidates)
        last = np.log(candidates.corpus_size + 1)
        ranks = np.log(np.arange(1, candidates.depth + 1))
        shares = np.array([0.0, *SHARES, 1.0])
        scores = np.empty(candidates.cosines.shape, np.float32)
        for row, knots in enumerate(ends):
            # Half a rank before the first item nothing is kept.
            scores[row] = -np.interp(ranks, [np.log(0.5), *knots, last], shares)
        scores[candidates.cosines == -np.inf] = -np.inf
        return scores


def fit_rank_quantile(candidates: Candidates, seed: int = 0) -> RankQuantilePolicy:
    """Fits the trees to held-out clicks of calibrate queries, each query with a weight of 1.

    A click that is not among the candidates counts as the next rank: whatever its own, quantiles
    above the last candidate are the same.

    Args:
      candidates: Of calibrate queries, with levels at LEVEL_TEMPERATURES and their breadth.
      seed: Of the clicks that are looked at.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    features = features_of(candidates)
    relevant = candidates.relevant
    order = np.random.default_rng(seed).permutation(len(relevant.rows))
    order = order[np.argsort(relevant.rows[order], kind="stable")]
    rows = relevant.rows[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    rows, order = rows[place < CLICKS], order[place < CLICKS]
    logs = np.log(np.minimum(relevant.ranks[order], candidates.depth) + 1)
    weights = 1 / np.bincount(rows, minlength=len(candidates))[rows]
    trees = (
        HistGradientBoostingRegressor(loss="quantile", quantile=share, random_state=seed, **_TREES)
        for share in SHARES
    )
    # Trees so small take a hundred times longer when their threads wait for a busy core.
    with threadpool_limits(1):
        fitted = tuple(tree.fit(features[rows], logs, weights) for tree in trees)
    return RankQuantilePolicy(trees=fitted)


def features_of(candidates: Candidates) -> np.ndarray:
    """[Q, F] float64 what a server knows of a query before it ends its list.

    The logs of tau and of the query's breadth, the best cosine, how far the cosines at RANKS and
    the levels at LEVEL_TEMPERATURES lie below the best, and the entropy of the softmax over the
    candidates.

    Raises:
      ValueError: The queries have no breadth, or levels at LEVEL_TEMPERATURES are missing.
    """
    breadth = breadth_with_levels(candidates, LEVEL_TEMPERATURES)
    cosines, logits = candidates.cosines, candidates.logits
    best, top = _finite(cosines[:, 0]), _finite(logits[:, 0])
    columns = [np.log(candidates.tau), np.log1p(breadth), best]
    columns += [best - cosines[:, min(rank, candidates.depth) - 1] for rank in RANKS]
    columns += [
        top - candidates.levels[level_temperature] for level_temperature in LEVEL_TEMPERATURES
    ]
    columns.append(_entropy(logits, top))
    features = np.stack(columns, axis=1).astype(np.float64)
    # A query with fewer candidates than a rank has no cosine there.
    return np.where(np.isfinite(features), features, np.nan)


def _finite(values: np.ndarray) -> np.ndarray:
    """[Q] the values; 0 for a query without a candidate."""
    return np.where(values == -np.inf, np.float32(0), values)


def _entropy(logits: np.ndarray, top: np.ndarray) -> np.ndarray:
    """[Q] entropies of the softmax over logits [Q, M], -inf where there is none, at most `top`."""
    entropies = np.zeros(len(logits))
    for begin in range(0, len(logits), ROWS):
        part = slice(begin, begin + ROWS)
        below = logits[part].astype(np.float64) - top[part, None]
        mass = np.exp(below)
        total = np.maximum(mass.sum(axis=1), 1)
        mean = np.sum(mass * np.maximum(below, -1e30), axis=1) / total
        entropies[part] = np.log(total) - mean
    return entropies

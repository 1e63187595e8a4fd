"""The depth law: how a query's new clicks spread over its ranking, learnt from held-out clicks.

At a given average number of items, macro recall is largest if a list takes an item iff the share of
its query's clicks that is expected there is at least one cut-off for all queries. The level takes
the tempered softmax for that share. New clicks spread otherwise: of a query with many known clicks
the best items are often taken, noise reaches every rank alike, and towers are surer of some queries
than they should be. So the softmax gets a correction, a small network on what a server knows,

    p_q(r) = exp(logit_q(r) + network(features_q(r))) / sum of the same over all ranks of the corpus

fitted by the likelihood of held-out clicks of calibrate queries, each query with a weight of 1. A
list is a prefix of its ranking, so what counts is the concave envelope of the share over items (as
for the `oracle`, which knows the clicks): its slope falls along the ranking, and is the score.

Ranks are taken in cells that grow with the rank; what lies beyond the candidates is one cell more.
The ranking must be there before the list can end, down to where the law may end it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from experiments.policies.features import breadth_with_levels
from pebr_tf.cutoff.candidates import ROWS, Candidates
from pebr_tf.cutoff.fitting import fit
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.models.query_head import QueryHead

# Level temperatures whose levels are features.
LEVEL_TEMPERATURES = (0.3, 0.6, 1.0, 1.5)
# The first ranks are cells of their own; those behind grow by this factor.
SINGLE, GROWTH = 8, 1.12
# A cell without an item has no share.
_NOTHING = np.float32(-1e9)


@tf.keras.utils.register_keras_serializable("pebr_tf")
class DepthHead(QueryHead):
    """What is added to the logit of a cell, from its features."""

    def __init__(self, hidden: tuple[int, ...] = (32,), **kwargs: object):
        """Makes the head; before training it adds nothing.

        Args:
          hidden: Widths of the hidden layers.
          **kwargs: Of the Keras layer.
        """
        super().__init__(1, hidden, **kwargs)

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Corrections [B] of features [B, F]."""
        return self.raw(features)[:, 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class DepthLawPolicy(Policy):
    """score = log of the recall that an item buys, by the fitted network.

    Attributes:
      head: The network.
      mean: [F] means of the features that it was fitted to.
      deviation: [F] their standard deviations.
    """

    name = "depth_law"
    title = "learnt depth law"

    head: DepthHead
    mean: np.ndarray
    deviation: np.ndarray

    def log_shares(self, candidates: Candidates) -> np.ndarray:
        """[Q, C] logs of the share of clicks that an item of each cell is expected to have."""
        cells = Cells.of(candidates)
        features = (features_of(candidates, cells) - self.mean) / self.deviation
        flat = tf.constant(features.reshape(-1, features.shape[-1]), tf.float32)
        scores = cells.logits + self.head(flat).numpy().reshape(cells.logits.shape)
        mass = scores + cells.log_sizes
        total = np.logaddexp.reduce(mass.astype(np.float64), axis=1, keepdims=True)
        # Cells without an item, which no list can take, would have any share.
        shares: np.ndarray = np.minimum(scores - total, 0)
        return shares

    def scores(self, candidates: Candidates) -> np.ndarray:
        cells = Cells.of(candidates)
        falling = np.log(falling_means(np.exp(self.log_shares(candidates)), cells.sizes))
        ranks = np.log(np.arange(1, candidates.depth + 1))
        middles = np.log(cells.middles)
        scores = np.stack([np.interp(ranks, middles, row) for row in falling]).astype(np.float32)
        scores[candidates.cosines == -np.inf] = -np.inf
        return np.minimum.accumulate(scores, axis=1, out=scores)


@dataclass(frozen=True)
class Cells:
    """Ranks in cells, the last of which is beyond the candidates, if there is anything beyond.

    Attributes:
      edges: [C + 1] first rank of each cell, from 0, and the size of the corpus.
      sizes: [Q, C] float64 items of each cell; a query may have fewer candidates than others.
      logits: [Q, C] float32 mean logits, falling.
    """

    edges: np.ndarray
    sizes: np.ndarray
    logits: np.ndarray

    @classmethod
    def of(cls, candidates: Candidates) -> Cells:
        """The cells of candidates."""
        inside = edges_of(candidates.depth)
        there = candidates.cosines > -np.inf
        sizes = np.add.reduceat(there, inside[:-1], axis=1, dtype=np.float64)
        sums = np.add.reduceat(np.where(there, candidates.logits, 0), inside[:-1], axis=1)
        logits = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
        if candidates.depth < candidates.corpus_size:
            inside = np.append(inside, candidates.corpus_size)
            rest = np.full((len(sizes), 1), candidates.corpus_size - candidates.depth)
            sizes = np.concatenate([sizes, rest], axis=1)
            logits = np.concatenate([logits, np.full((len(sizes), 1), np.inf)], axis=1)
        # Where there is no item, or none that was looked at, the last known logit stands.
        logits = np.minimum.accumulate(logits, axis=1)
        logits = np.where(logits == np.inf, 0, logits)
        return cls(inside, sizes, logits.astype(np.float32))

    @property
    def middles(self) -> np.ndarray:
        """[C] ranks in the middle of each cell, counted from 1."""
        middles: np.ndarray = (self.edges[:-1] + self.edges[1:] + 1) / 2
        return middles

    @property
    def log_sizes(self) -> np.ndarray:
        """[Q, C] float32."""
        logs = np.log(np.maximum(self.sizes, 1e-9)).astype(np.float32)
        return np.where(self.sizes > 0, logs, _NOTHING)


def fit_depth_law(candidates: Candidates, seed: int = 0) -> DepthLawPolicy:
    """Fits the law to held-out clicks of calibrate queries.

    Args:
      candidates: Of calibrate queries, with levels at LEVEL_TEMPERATURES and their breadth.
      seed: Of the weights, what is held out and the batches.
    """
    tf.keras.utils.set_random_seed(seed)
    cells = Cells.of(candidates)
    features = features_of(candidates, cells)
    flat = features.reshape(-1, features.shape[-1])
    mean, deviation = flat.mean(axis=0), flat.std(axis=0) + 1e-6
    head = DepthHead()
    head(tf.zeros([1, features.shape[-1]]))

    def losses(features: tf.Tensor, mass: tf.Tensor, clicks: tf.Tensor) -> tf.Tensor:
        flat = tf.reshape(features, [-1, features.shape[-1]])
        scores = mass + tf.reshape(head(flat), tf.shape(mass))
        return -tf.reduce_sum(clicks * tf.nn.log_softmax(scores), axis=1)

    arrays = ((features - mean) / deviation, cells.logits + cells.log_sizes)
    fit(head, losses, (*arrays, clicks_of(candidates, cells)), seed)
    return DepthLawPolicy(head=head, mean=mean, deviation=deviation)


def edges_of(depth: int) -> np.ndarray:
    """[C + 1] where the cells of the candidates begin, from 0, and `depth`."""
    edges = list(range(min(SINGLE, depth) + 1))
    while edges[-1] < depth:
        edges.append(min(max(round(edges[-1] * GROWTH), edges[-1] + 1), depth))
    return np.array(edges)


def clicks_of(candidates: Candidates, cells: Cells) -> np.ndarray:
    """[Q, C] float32 shares of a query's clicks in each cell; items without a cell do not count."""
    relevant = candidates.relevant
    found = relevant.ranks < cells.edges[-1]
    rows, ranks = relevant.rows[found], relevant.ranks[found]
    shares = np.zeros(cells.sizes.shape, np.float32)
    places = np.searchsorted(cells.edges, ranks, side="right") - 1
    np.add.at(shares, (rows, places), 1 / candidates.totals[rows])
    return shares


def features_of(candidates: Candidates, cells: Cells) -> np.ndarray:
    """[Q, C, F] float32 what a server knows of a cell.

    Of the cell: the log of its rank, how far its logit is below the best and above the levels at
    LEVEL_TEMPERATURES, how fast logits fall there, its rank over the query's breadth. Of the
    query: the logs of tau and breadth, how far the levels are below the best.

    Raises:
      ValueError: The queries have no breadth, or levels at LEVEL_TEMPERATURES are missing.
    """
    breadth = breadth_with_levels(candidates, LEVEL_TEMPERATURES)
    ranks, logits = np.log(cells.middles)[None], cells.logits
    top, known = logits[:, :1], np.log1p(breadth)[:, None]
    levels = [
        candidates.levels[level_temperature][:, None] for level_temperature in LEVEL_TEMPERATURES
    ]
    columns = [
        ranks,
        logits - top,
        *(logits - level for level in levels),
        np.gradient(logits, ranks[0], axis=1) if logits.shape[1] > 1 else 0 * logits,
        ranks - known,
        known,
        np.log(candidates.tau)[:, None],
        *(top - level for level in levels),
    ]
    shape = logits.shape
    return np.stack([np.broadcast_to(column, shape) for column in columns], -1).astype(np.float32)


def falling_means(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """[Q, C] slopes of the concave envelope of a sum over items, cell by cell.

    Where an item of a later cell has more, cells are joined until none has: the non-increasing
    sequence next to `values` in weighted squares, min over begins of the max over ends of means.

    Args:
      values: [Q, C] of each item of a cell, above 0.
      sizes: [Q, C] items of the cell; without any, it has what the cell before has.
    """
    result = np.empty_like(values)
    cells = values.shape[1]
    behind = np.arange(cells)[:, None] > np.arange(cells)[None]
    for begin in range(0, len(values), ROWS):
        part = slice(begin, begin + ROWS)
        edge = np.zeros((len(values[part]), 1))
        mass = np.concatenate([edge, np.cumsum(values[part] * sizes[part], axis=1)], axis=1)
        size = np.concatenate([edge, np.cumsum(sizes[part], axis=1)], axis=1)
        # Means over the cells from i to j, [B, i, j].
        width = size[:, None, 1:] - size[:, :-1, None]
        means = (mass[:, None, 1:] - mass[:, :-1, None]) / np.where(width > 0, width, 1)
        means[(width <= 0) | behind] = -np.inf
        best = np.maximum.accumulate(means[:, :, ::-1], axis=2)[:, :, ::-1]
        # No mean begins in cells that have no item up to the end.
        best[:, behind] = np.inf
        best[best == -np.inf] = np.inf
        result[part] = best.min(axis=1)
    result[result == np.inf] = np.finfo(np.float32).tiny
    return np.minimum.accumulate(np.maximum(result, np.finfo(np.float32).tiny), axis=1)

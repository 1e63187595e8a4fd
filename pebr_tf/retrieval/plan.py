"""How far a query must search, predicted by a model of the index's leaves.

Inside a leaf the cosines of its items with a query q are near Gaussian around q . c, with c the
leaf's centroid. Their deviation is the leaf's own spread (the root mean square distance of its
items from c) over sqrt(concentration), the number of directions that the items spread over. The
spread depends on the direction: width(q), from the scatter of all items around their centroids, is
the spread along q relative to the average. So the leaf is expected to hold

    size * NormalTail((t - q . c) * sqrt(concentration) / (spread * width(q)))

items above a threshold t. Dividing q and t by the width first removes it from the formula.

Leaves are searched in order of q . c until they hold a share `cover` of the expected items. The sum
over all leaves predicts the number of results.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np
from scipy import special

# Leaves more than REACH deviations below a threshold are ignored; if all leaves are below it, those
# more than REACH_OF_NEAREST below the nearest one.
REACH = 3.5
REACH_OF_NEAREST = 2.0
# A search for k items considers leaves with NEARBY_ITEMS * k items, and at least NEARBY_LEAVES.
NEARBY_ITEMS = 20
NEARBY_LEAVES = 80
# Relative and absolute tolerance of the cosine that k items exceed.
ENOUGH_ITEMS = 0.01
ENOUGH_COSINE = 5e-4
TINY = np.float32(1e-30)
# Similarities of coinciding centroids differ by rounding; a plan takes all of them or none.
SAME = np.float32(4e-6)
# Widths are kept inside these bounds; similarities divided by one are then at most 2 in size.
WIDTHS = (0.5, 2.0)
FARTHEST = np.float32(1 / WIDTHS[0])
# Items per step over the catalogue.
BLOCK = 100_000
# The margin for quantisation errors shrinks by these factors above these expected counts, because
# each of many items weighs less.
MARGIN_COUNTS = np.array([30.0, 300.0, 3000.0], np.float32)
MARGIN_FACTORS = np.array([1.0, 0.75, 0.6, 0.5], np.float32)
# A threshold that no cosine reaches, used in place of -inf.
BEYOND = 2 * FARTHEST


@dataclass(frozen=True)
class IndexTuning:
    """How far an index searches; see `tune`.

    Attributes:
      concentration: Directions that the items of a leaf spread over.
      cover: Share of the items expected above a threshold that the searched leaves hold.
      min_leaves: The least leaves of a query.
      margin: Cosine below the threshold that still makes a candidate, where few are expected.
      top_k_cover: Share of the best k items that the leaves searched for them are expected to hold.
    """

    concentration: float
    cover: float = 0.98
    min_leaves: int = 8
    margin: float = 0.02
    top_k_cover: float = 0.98


@dataclass(frozen=True)
class Leaves:
    """Statistics of the leaves of an index.

    Attributes:
      centroids: [L, n] float32.
      sizes: [L] float32, numbers of items.
      spreads: [L] float32, root mean square distance of its items from its centroid.
      scatter: [n, n] float32, covariance of all items around their centroids, of trace n.
    """

    centroids: np.ndarray
    sizes: np.ndarray
    spreads: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, tokens: np.ndarray, centroids: np.ndarray) -> Leaves:
        """The leaves of items [N, n] that lie in the leaves `tokens` [N]."""
        count, dimension = centroids.shape
        squared, scatter = np.zeros(count), np.zeros((dimension, dimension))
        for begin in range(0, len(vectors), BLOCK):
            part = slice(begin, begin + BLOCK)
            apart = vectors[part] - centroids[tokens[part]]
            squared += np.bincount(tokens[part], np.einsum("ij,ij->i", apart, apart), count)
            scatter += apart.T @ apart
        sizes = np.bincount(tokens, minlength=count)
        mean = max(np.trace(scatter) / dimension, TINY)
        return cls(
            centroids=np.ascontiguousarray(centroids),
            sizes=sizes.astype(np.float32),
            spreads=np.sqrt(squared / np.maximum(sizes, 1)).clip(1e-3).astype(np.float32),
            scatter=(scatter / mean).astype(np.float32),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    def deviations(self, concentration: float) -> np.ndarray:
        """[L] deviation of the cosines inside each leaf."""
        return self.spreads / np.float32(concentration**0.5)

    def widths(self, queries: np.ndarray) -> np.ndarray:
        """[B, 1] spread of the items of a leaf along queries [B, n], relative to the average."""
        squared = np.einsum("ij,ij->i", queries @ self.scatter, queries)
        return np.sqrt(squared).clip(*WIDTHS)[:, None]


@dataclass(frozen=True)
class Plan:
    """The work of each of B queries.

    Attributes:
      leaves: [B] int, leaves to search first.
      enough: [B] int, leaves to search if those give fewer items than the limit.
      expected: [B] float32, items expected at or above the threshold.
    """

    leaves: np.ndarray
    enough: np.ndarray
    expected: np.ndarray

    def take(self, rows: np.ndarray) -> Plan:
        return Plan(self.leaves[rows], self.enough[rows], self.expected[rows])


class Planner:
    """Plans searches of an index's leaves with one tuning."""

    def __init__(self, leaves: Leaves, tuning: IndexTuning):
        self.leaves, self.tuning = leaves, tuning
        self._centroids = np.ascontiguousarray(leaves.centroids.T)
        self._deviations = leaves.deviations(tuning.concentration)
        self._precisions = 1 / self._deviations
        self._items = float(leaves.sizes.sum())
        self._least = min(tuning.min_leaves, len(leaves))
        self._margins = np.float32(tuning.margin) * MARGIN_FACTORS

    def margins(self, expected: np.ndarray) -> np.ndarray:
        """[B] float32 margins below the thresholds of queries that expect [B] items."""
        return self._margins[np.searchsorted(MARGIN_COUNTS, expected)]

    def margin(self, expected: float) -> np.float32:
        return self._margins[bisect.bisect_left(MARGIN_COUNTS, expected)]

    def plan(self, queries: np.ndarray, thresholds: np.ndarray, limit: int) -> Plan:
        """Leaves to search for queries [B, n] that end at thresholds [B] or after `limit` items."""
        widths = self.leaves.widths(queries)
        similarity = (queries / widths) @ self._centroids
        thresholds = thresholds / widths[:, 0]
        everything = thresholds == -np.inf
        if everything.all():
            enough = np.full(len(queries), len(self.leaves))
            expected = np.full(len(queries), self._items, np.float32)
        else:
            finite = np.where(everything, BEYOND, thresholds)
            enough, expected = self._above(similarity, finite)
            if everything.any():
                enough[everything], expected[everything] = len(self.leaves), self._items
        limited = np.flatnonzero(expected > limit)
        if not len(limited):
            return Plan(enough, enough, expected)
        leaves = enough.copy()
        some = similarity if len(limited) == len(leaves) else similarity[limited]
        leaves[limited] = np.minimum(self._of_limit(some, limit), enough[limited])
        return Plan(leaves, enough, expected)

    def plan_one(self, query: np.ndarray, threshold: np.float32) -> tuple[int, float]:
        """Leaves to search and items expected for a query [n] that ends at a finite threshold.

        The same as `plan` without a limit, in a third of the time.
        """
        width = min(max(math.sqrt(self.leaves.scatter.dot(query).dot(query)), WIDTHS[0]), WIDTHS[1])
        similarity = self.leaves.centroids.dot(query)
        below = threshold - similarity
        below *= self._precisions
        reach = max(below.min() + REACH_OF_NEAREST * width, REACH * width)
        leaves = (below <= reach).nonzero()[0]
        near = similarity[leaves]
        items = special.ndtr(below[leaves] * (-1 / width))
        items *= self.leaves.sizes[leaves]
        order = near.argsort()[::-1]
        held = items[order].cumsum()
        expected = float(held[-1])
        rank = min(held.searchsorted(self.tuning.cover * expected), len(order) - 1)
        searched = np.count_nonzero(similarity >= near[order[rank]] - SAME)
        return max(searched, self._least), expected

    def _above(
        self, similarity: np.ndarray, thresholds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """[B] leaves that cover the items expected above thresholds [B], and [B] those items."""
        below = (thresholds[:, None] - similarity) * self._precisions
        reach = np.maximum(below.min(axis=1) + REACH_OF_NEAREST, REACH)
        flat = (below <= reach[:, None]).ravel().nonzero()[0]
        rows = flat // len(self.leaves)
        near = similarity.ravel()[flat]
        depth = below.ravel()[flat].astype(np.float64)
        items = self.leaves.sizes[flat - rows * len(self.leaves)] * special.ndtr(-depth)
        total = np.bincount(rows, items, len(similarity))
        last = _covering(rows, near, items, total, self.tuning.cover)
        return self._down_to(similarity, last), total.astype(np.float32)

    def _down_to(self, similarity: np.ndarray, last: np.ndarray) -> np.ndarray:
        """[B] number of leaves whose similarity is at least `last` [B]."""
        return np.maximum((similarity >= last[:, None] - SAME).sum(axis=1), self._least)

    def _of_limit(self, similarity: np.ndarray, limit: int) -> np.ndarray:
        """[B] leaves that are expected to hold the best `limit` items.

        These are the items above the cosine that `limit` items are expected to exceed, which is
        found from the nearest leaves.
        """
        nearby = NEARBY_ITEMS * limit * len(self.leaves) / max(self._items, 1)
        nearby = min(len(self.leaves), max(NEARBY_LEAVES, int(nearby)))
        leaves, near = _nearest(similarity, nearby)
        sizes, precisions = self.leaves.sizes[leaves], self._precisions[leaves]
        cosine = _exceeded_by(limit, near, sizes, precisions)
        items = sizes * special.ndtr((near - cosine) * precisions)
        rows = np.repeat(np.arange(len(near)), nearby)
        last = _covering(
            rows, near.ravel(), items.ravel(), items.sum(axis=1), self.tuning.top_k_cover
        )
        return self._down_to(similarity, last)


def _exceeded_by(
    limit: int, near: np.ndarray, sizes: np.ndarray, precisions: np.ndarray
) -> np.ndarray:
    """[B, 1] the cosine that `limit` items of the leaves are expected to exceed.

    Newton's method on the logarithm of their number, kept inside a bracket that shrinks. `near`,
    `sizes` and `precisions` [B, M] are the leaves' similarities, items, and 1 over deviations.
    """
    exceeded = np.empty((len(near), 1), np.float32)
    rows = np.arange(len(near))
    high = np.full((len(near), 1), FARTHEST)
    low = -high
    cosine = (near + 1 / precisions).max(axis=1, keepdims=True).clip(low, high)
    while True:
        depth = (cosine - near) * precisions
        items = (sizes * special.ndtr(-depth)).sum(axis=1, keepdims=True).clip(TINY)
        excess = np.log(items / limit)
        low, high = np.where(excess >= 0, cosine, low), np.where(excess < 0, cosine, high)
        exceeded[rows] = cosine
        left = ((np.abs(excess) >= ENOUGH_ITEMS) & (high - low >= ENOUGH_COSINE))[:, 0]
        if not left.any():
            return exceeded
        density = (sizes * precisions * np.exp(-0.5 * depth * depth)).sum(axis=1, keepdims=True)
        slope = np.maximum(density * np.float32(0.3989423) / items, TINY)
        step = cosine + excess / slope
        cosine = np.where((step > low) & (step < high), step, (low + high) / 2)
        if 2 * np.count_nonzero(left) < len(left):
            rows, near, sizes, precisions, low, high, cosine = (
                array[left] for array in (rows, near, sizes, precisions, low, high, cosine)
            )


def _nearest(similarity: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """[B, count] the nearest leaves of each row, in no order, and their similarities."""
    rank = similarity.shape[1] - count
    last = np.partition(similarity, rank, axis=1)[:, rank, None]
    flat = (similarity >= last).ravel().nonzero()[0]
    if len(flat) == count * len(similarity):
        leaves = (flat % similarity.shape[1]).reshape(-1, count)
    else:
        # Some rows have ties at their end.
        leaves = np.argpartition(similarity, rank, axis=1)[:, rank:]
    return leaves, np.take_along_axis(similarity, leaves, axis=1)


def _covering(
    rows: np.ndarray, near: np.ndarray, items: np.ndarray, total: np.ndarray, cover: float
) -> np.ndarray:
    """[B] the similarity down to which leaves hold the share `cover` of a row's items.

    Of M leaves, `rows` are their queries, ascending, `near` their similarities, and `items` the
    expected items, whose sums by query are `total` [B]. `cover` is below 1.
    """
    # One sort serves all rows: similarities are at most FARTHEST in size, so rows stay apart.
    order = np.argsort(rows * (3.0 * FARTHEST) - near)
    # Shares, because the items differ by more magnitudes than a running sum can hold.
    held = np.cumsum((items / np.where(total > 0, total, 1)[rows])[order], dtype=np.float64)
    end = np.searchsorted(rows, np.arange(1, len(total) + 1))
    before = np.concatenate([[0.0], held[end[:-1] - 1]])
    return near[order[np.minimum(np.searchsorted(held, before + cover), end - 1)]]

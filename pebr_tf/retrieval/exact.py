"""Search without an index: the oracle, and the right choice for small catalogues."""

from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.retrieval.result import RangeResult, ranked, splits_of
from pebr_tf.retrieval.searcher import Searcher, SearchRequest
from pebr_tf.retrieval.vectors import item_ids, unit_vectors

BACKGROUND_SAMPLE = Cutoff.background_sample
# Scores of one block, 64 MB: large enough for BLAS, small enough for any machine.
BLOCK_SCORES = 16_000_000
# Below it, a product for each query takes less time than one for all, which rearranges the vectors.
FEW_QUERIES = 8
# Bound on the error of a float32 product of unit vectors.
ROUNDING = 1e-5


class ExactSearcher(Searcher):
    """Scores every item with a matrix product in blocks, then the survivors in float64.

    The second step makes a result independent of its batch: a score is the float32 nearest to the
    real cosine of the float32 vectors.
    """

    def __init__(
        self,
        vectors: Any,
        ids: Any = None,
        background: np.ndarray | None = None,
        checked: bool = False,
    ):
        """Makes the searcher of item vectors [N, n], which are scaled to length 1.

        Ids [N] are different integers or texts; None numbers the items from 0. `background` [M, n]
        is a sample that represents the catalogue; None draws 2,000 items. `checked` skips the
        checks of float32 unit vectors and ids, e.g. from a verified file.

        Raises:
          ValueError: A vector that is not finite or of length zero, or an id twice.
        """
        vectors = vectors if checked else unit_vectors("vectors", vectors)
        ids = ids if checked else item_ids(ids, len(vectors))
        super().__init__(vectors, ids, sample_of(vectors) if background is None else background)

    def _search(self, request: SearchRequest) -> RangeResult:
        rows, positions = self._candidates(request)
        scores = cosines(request.queries, self.vectors, rows, positions)
        passed = scores >= request.thresholds[rows]
        rows, positions, scores = rows[passed], positions[passed], scores[passed]
        counts = np.bincount(rows, minlength=len(request))
        ids, scores = ranked(rows, self.ids[positions], scores)
        cut = counts > request.limit if request.limit_binds else np.zeros(len(request), bool)
        return RangeResult(
            row_splits=splits_of(counts),
            item_ids=ids,
            scores=scores,
            thresholds=request.thresholds,
            expected_counts=self._expected_count(request.queries, request.thresholds),
            truncated=cut,
        ).head(request.longest)

    def _candidates(self, request: SearchRequest) -> tuple[np.ndarray, np.ndarray]:
        """Rows and positions of a small superset of the result."""
        step = max(1, BLOCK_SCORES // len(self))
        found = []
        for begin in range(0, len(request), step):
            part = slice(begin, begin + step)
            scores = products(request.queries[part], self.vectors)
            rows, positions = passing(scores, request.thresholds[part], request.longest + 1)
            found.append((rows + begin, positions))
        return (
            np.concatenate([rows for rows, _ in found]),
            np.concatenate([positions for _, positions in found]),
        )

    def _expected_count(self, queries: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """[B] counts from the background sample, whose items represent N / M items each."""
        passed = queries @ self.background.T >= thresholds[:, None]
        return (passed.sum(axis=1) * (len(self) / len(self.background))).astype(np.float32)


def products(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """[B, N] float32 products of queries [B, n] and vectors [N, n], within `ROUNDING`."""
    if len(queries) >= FEW_QUERIES:
        return queries @ vectors.T
    scores = np.empty((len(queries), len(vectors)), np.float32)
    for query, row in zip(queries, scores, strict=True):
        np.matmul(vectors, query, out=row)
    return scores


def passing(
    scores: np.ndarray, thresholds: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and positions of all `products` [B, N] that may be at or above thresholds [B].

    A row with more than `limit` of them keeps the best `limit`, and others that are close.
    """
    floor = (thresholds - ROUNDING)[:, None]
    passed = scores >= floor
    crowded = np.flatnonzero(np.count_nonzero(passed, axis=1) > limit)
    if len(crowded):
        rank = scores.shape[1] - limit
        last = np.partition(scores[crowded], rank, axis=1)[:, rank, None]
        passed[crowded] &= scores[crowded] >= last - 2 * ROUNDING
    # Faster than the two indices of `np.nonzero`.
    flat = passed.ravel().nonzero()[0]
    rows = flat // scores.shape[1]
    return rows, flat - rows * scores.shape[1]


def cosines(
    queries: np.ndarray, vectors: np.ndarray, rows: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    """[M] float32 nearest to the real cosine of queries[rows] and vectors[positions].

    Summed in float64, pair by pair, so that no score depends on its neighbours.
    """
    scores = np.empty(len(rows), np.float32)
    step = max(1, BLOCK_SCORES // max(1, queries.shape[1]))
    for begin in range(0, len(rows), step):
        part = slice(begin, begin + step)
        left = queries[rows[part]].astype(np.float64)
        scores[part] = np.einsum("ij,ij->i", left, vectors[positions[part]])
    # A float32 unit vector is up to 1e-7 longer than 1; no cosine is above 1.
    return np.clip(scores, -1, 1, out=scores)


def sample_of(vectors: np.ndarray, size: int = BACKGROUND_SAMPLE) -> np.ndarray:
    """A uniform random sample of the rows, the same for the same number of rows."""
    if len(vectors) <= size:
        return np.asarray(vectors)
    chosen = np.random.default_rng(0).choice(len(vectors), size, replace=False)
    return np.asarray(vectors[np.sort(chosen)])

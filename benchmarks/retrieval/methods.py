"""Ways to get every item above a threshold: ours, and what a user would pick instead.

Each rival is built as its own documentation has it and tuned like ours: to the least time with
which the smaller of macro and micro recall reaches the target on the tuning queries. What returns a
fixed number of items is cut at the thresholds afterwards; what has one threshold a call is called
query by query; approximate scores are replaced by exact ones. Rivals need not sort.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.retrieval.memory import bytes_per_item
from benchmarks.retrieval.method import Method, Work, packed, steps
from pebr_tf.config import Index
from pebr_tf.retrieval import build_index, load_index
from pebr_tf.retrieval.plan import Leaves, Planner
from pebr_tf.retrieval.result import RangeResult
from pebr_tf.retrieval.scann_searcher import ScannSearcher
from pebr_tf.retrieval.tune import LeafCoverage, recall

FIXED_K = 5_000
# Queries of one matrix product; more take memory that has to be fetched page by page.
BRUTE_BLOCK = 64
# Below this an fp16 score may be above the threshold once it is exact.
HALF_PRECISION = 2e-3


class RangeSearch(Method):
    """The range search of this package."""

    name = "pEBR-TF range search on ScaNN"

    def build(self, work: Work) -> None:
        self._folder = tempfile.TemporaryDirectory()
        directory = Path(self._folder.name) / "index"
        manifest = build_index(
            directory,
            work.items,
            config=Index(exact_below=0, recall_target=work.target, check_queries=1),
            queries=work.tuning.queries,
            thresholds=work.tuning.thresholds,
        )
        searcher = load_index(directory)
        self.bytes_per_vector = bytes_per_item(directory)
        assert isinstance(searcher, ScannSearcher)
        self.searcher = searcher
        tuning = manifest.tuning
        self.setting = (
            f"{manifest.leaves:,} leaves, concentration {tuning['concentration']:.0f}, "
            f"cover {tuning['cover']}, margin {tuning['margin']:.4f}"
        )

    def tune(self, work: Work) -> None:
        found = self.search(work.tuning.queries, work.tuning.thresholds)
        self.reached = recall(found, work.tuning.answers)

    def search(self, queries: np.ndarray, thresholds: np.ndarray) -> RangeResult:
        return self.searcher.search(queries, thresholds)


class BruteForce(Method):
    """A matrix product and a comparison."""

    name = "NumPy BLAS brute force"
    setting = "exact"

    def build(self, work: Work) -> None:
        self._items = np.ascontiguousarray(work.items.T)

    def search(self, queries: np.ndarray, thresholds: np.ndarray) -> RangeResult:
        rows = []
        for begin in range(0, len(queries), BRUTE_BLOCK):
            part = slice(begin, begin + BRUTE_BLOCK)
            scores = queries[part] @ self._items
            for score, threshold in zip(scores, thresholds[part], strict=True):
                found = np.flatnonzero(score >= threshold)
                rows.append((found, score[found]))
        return packed(rows, thresholds)


class FixedK(Method):
    """ScaNN for a fixed number of neighbours, cut at the thresholds."""

    def __init__(self, dimensions_per_block: int):
        self._dimensions_per_block = dimensions_per_block
        self.name = f"ScaNN fixed {FIXED_K:,}, {dimensions_per_block} dim per block"

    def build(self, work: Work) -> None:
        from scann.scann_ops.py import scann_ops_pybind

        self._most = min(FIXED_K, len(work.items))
        self._scann = (
            scann_ops_pybind.builder(work.items, self._most, "dot_product")
            .tree(work.leaves, 100, training_sample_size=min(len(work.items), 250 * work.leaves))
            .score_ah(self._dimensions_per_block, anisotropic_quantization_threshold=0.2)
            .reorder(self._most)
            .set_n_training_threads(os.cpu_count() or 1)
            .build()
        )

    def ladders(self, work: Work) -> list[list[Any]]:
        return [
            [(leaves, int(factor * self._most)) for leaves in steps(0.02, 1, work.leaves)]
            for factor in (1, 1.1, 1.2, 1.35, 1.5, 1.8, 2.5)
        ]

    def use(self, setting: Any) -> None:
        self._leaves, self._candidates = setting
        self.setting = f"{self._leaves} leaves, {self._candidates:,} candidates"

    def search(self, queries: np.ndarray, thresholds: np.ndarray) -> RangeResult:
        if len(queries) == 1:
            neighbours = self._scann.search(queries[0], self._most, self._candidates, self._leaves)
            pairs = [neighbours]
        else:
            pairs = list(
                zip(
                    *self._scann.search_batched(
                        queries, self._most, self._candidates, self._leaves
                    ),
                    strict=True,
                )
            )
        rows = []
        for (ids, scores), threshold in zip(pairs, thresholds, strict=True):
            # Scores descend, and NaN pads a short list.
            last = int(np.count_nonzero(scores >= threshold))
            rows.append((ids[:last], scores[:last]))
        return packed(rows, thresholds)


class FaissFlat(Method):
    """FAISS IVFFlat range_search."""

    name = "FAISS IVFFlat range_search"
    factory = "IVF{leaves},Flat"

    def build(self, work: Work) -> None:
        import faiss

        faiss.omp_set_num_threads(os.cpu_count() or 1)
        self._faiss = faiss
        self._items = work.items
        factory = self.factory.format(leaves=work.leaves)
        self._index: Any = faiss.index_factory(
            work.items.shape[1], factory, faiss.METRIC_INNER_PRODUCT
        )
        self._index.train(work.items)
        self._index.add(work.items)
        faiss.omp_set_num_threads(1)

    def ladders(self, work: Work) -> list[list[Any]]:
        return [steps(0.01, 1, work.leaves)]

    def use(self, setting: Any) -> None:
        self._probes = setting
        self.setting = f"nprobe {setting}"

    def probes(self, queries: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """[B] leaves to search."""
        return np.full(len(queries), self._probes)

    def search(self, queries: np.ndarray, thresholds: np.ndarray) -> RangeResult:
        parameters = self._faiss.SearchParametersIVF()
        rows = []
        for row, probes in enumerate(self.probes(queries, thresholds).tolist()):
            parameters.nprobe = probes
            rows.append(self.one(queries[row, None], float(thresholds[row]), parameters))
        return packed(rows, thresholds)

    def one(
        self, query: np.ndarray, threshold: float, parameters: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ids and scores of one query [1, n]."""
        _, scores, ids = self._index.range_search(query, threshold, params=parameters)
        return ids, scores


class FaissHalf(FaissFlat):
    """FAISS IVF with fp16 codes, as many leaves as our plan gives each query, and exact scores."""

    name = "FAISS IVF fp16 with our nprobe"
    factory = "IVF{leaves},SQfp16"

    def build(self, work: Work) -> None:
        super().build(work)
        index = self._index
        centroids = index.quantizer.reconstruct_n(0, index.nlist)
        _, tokens = index.quantizer.search(work.items, 1)
        tokens = tokens[:, 0]
        self._leaves = Leaves.of(work.items, tokens, centroids)
        self._coverage = LeafCoverage(self._leaves, work.tuning, tokens)

    def ladders(self, work: Work) -> list[list[Any]]:
        lowest = [min(work.tuned + extra, 0.9999) for extra in (0, 5e-4, 1e-3, 2e-3, 4e-3)]
        return [[self._coverage.cheapest(share)[0] for share in lowest]]

    def use(self, setting: Any) -> None:
        self._planner = Planner(self._leaves, setting)
        self.setting = f"concentration {setting.concentration:.0f}, cover {setting.cover}"

    def one(
        self, query: np.ndarray, threshold: float, parameters: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        _, _, ids = self._index.range_search(query, threshold - HALF_PRECISION, params=parameters)
        scores = self._items[ids] @ query[0]
        passed = scores >= threshold
        return ids[passed], scores[passed]

    def probes(self, queries: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        return self._planner.plan(queries, thresholds, len(self._items)).leaves


class Hnswlib(Method):
    """hnswlib for a fixed number of neighbours, cut at the thresholds."""

    name = f"hnswlib top {FIXED_K:,} + filter"

    def build(self, work: Work) -> None:
        import hnswlib

        self._index = hnswlib.Index(space="ip", dim=work.items.shape[1])
        self._index.init_index(max_elements=len(work.items), ef_construction=100, M=16)
        self._index.add_items(work.items, num_threads=os.cpu_count() or 1)
        self._most = min(FIXED_K, len(work.items))

    def ladders(self, work: Work) -> list[list[Any]]:
        return [steps(1, 4, self._most)]

    def use(self, setting: Any) -> None:
        self._index.set_ef(setting)
        self.setting = f"ef {setting:,}"

    def search(self, queries: np.ndarray, thresholds: np.ndarray) -> RangeResult:
        ids, distances = self._index.knn_query(queries, k=self._most, num_threads=1)
        return _filtered(ids, 1 - distances, thresholds)


class Usearch(Method):
    """usearch for a fixed number of neighbours, cut at the thresholds."""

    name = f"usearch top {FIXED_K:,} + filter"

    def build(self, work: Work) -> None:
        from usearch.index import Index as UsearchIndex

        self._index: Any = UsearchIndex(ndim=work.items.shape[1], metric="ip", dtype="f32")
        self._index.add(np.arange(len(work.items)), work.items, threads=os.cpu_count() or 1)
        self._most = min(FIXED_K, len(work.items))

    def ladders(self, work: Work) -> list[list[Any]]:
        return [steps(1, 4, self._most)]

    def use(self, setting: Any) -> None:
        self._index.expansion_search = setting
        self.setting = f"expansion {setting:,}"

    def search(self, queries: np.ndarray, thresholds: np.ndarray) -> RangeResult:
        matches = self._index.search(queries, self._most, threads=1)
        ids = np.asarray(matches.keys).reshape(len(queries), -1)
        distances = np.asarray(matches.distances).reshape(ids.shape)
        # Behind the matches of a row stands anything.
        found = np.reshape(getattr(matches, "counts", ids.shape[1]), (-1, 1))
        distances = np.where(np.arange(ids.shape[1]) < found, distances, np.float32(np.inf))
        return _filtered(ids, 1 - distances, thresholds)


def _filtered(ids: np.ndarray, scores: np.ndarray, thresholds: np.ndarray) -> RangeResult:
    passed = scores >= thresholds[:, None]
    return packed(
        [(row[keep], score[keep]) for row, score, keep in zip(ids, scores, passed, strict=True)],
        thresholds,
    )

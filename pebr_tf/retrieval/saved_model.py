"""A query model and an index in one SavedModel: query text in, items out, ScaNN's op inside.

A stock TF Serving binary does not have ScaNN's op. This model is for servers that link it, and for
Python processes that `import scann` before they load it. `pebr export` writes it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.errors import UserError
from pebr_tf.files import new_directory
from pebr_tf.libraries import scann_op
from pebr_tf.retrieval import scann_files
from pebr_tf.retrieval.artifact import load_index
from pebr_tf.retrieval.plan import (
    MARGIN_COUNTS,
    MARGIN_FACTORS,
    REACH,
    REACH_OF_NEAREST,
    WIDTHS,
)
from pebr_tf.retrieval.scann_searcher import (
    ANY_MARGIN,
    CANDIDATES,
    LOWEST,
    MORE_CANDIDATES,
    ScannSearcher,
)
from pebr_tf.retrieval.searcher import DEFAULT_LIMIT

EncodeFunction = Callable[[tf.Tensor], dict[str, tf.Tensor]]


class SavedQueryModel(tf.Module):
    """The query model of a release: texts [B] to `embedding` [B, n], `threshold` [B] and more."""

    def __init__(self, directory: Path):
        super().__init__()
        # The attribute keeps the variables and tables that the signature uses.
        self._loaded = tf.saved_model.load(str(directory))

    def __call__(self, query: tf.Tensor) -> dict[str, tf.Tensor]:
        encoded: dict[str, tf.Tensor] = self._loaded.signatures["serving_default"](query=query)
        return encoded


class RetrievalModule(tf.Module):
    """Encodes query texts, plans as `plan.Planner` does, and searches, all in one graph.

    Unlike in `ScannSearcher`, an item within 1e-6 of its threshold may fall on either side, and
    ties have no fixed order.
    """

    def __init__(self, query_model: EncodeFunction, directory: Path, limit: int = DEFAULT_LIMIT):
        """Makes the module of an index folder of kind "scann", for `limit` items of a query.

        `query_model` maps texts [B] to `embedding` [B, n] and `threshold` [B]. It is a tf.Module or
        a loaded SavedModel, so that its variables are saved as well.
        """
        super().__init__()
        searcher = load_index(directory)
        if not isinstance(searcher, ScannSearcher):
            raise UserError(f"{directory} must be an index of kind scann. Received: exact.")
        self.query_model = query_model
        self.limit = limit
        self._tuning, self._most_leaves = searcher.tuning, searcher.max_leaves
        leaves = searcher.leaves
        self._size = len(searcher)
        self._state = _state(Path(directory))
        self._item_ids = tf.Variable(searcher.ids, trainable=False)
        self._centroids = tf.Variable(leaves.centroids, trainable=False)
        self._sizes = tf.Variable(leaves.sizes, trainable=False)
        self._scatter = tf.Variable(leaves.scatter, trainable=False)
        deviations = leaves.deviations(searcher.tuning.concentration)
        self._deviations = tf.Variable(deviations, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="query")], autograph=False)
    def retrieve(self, query: tf.Tensor) -> dict[str, tf.Tensor]:
        """Items of each query text [B].

        Returns:
          `item_ids` [M] and `scores` [M], those of query i from row_splits[i] to row_splits[i + 1];
          `row_splits` [B + 1]; `threshold`, `expected_count` and `truncated`, [B] each.
        """
        encoded = self.query_model(query)
        embedding = tf.math.l2_normalize(tf.cast(encoded["embedding"], tf.float32), axis=-1)
        threshold = tf.cast(encoded["threshold"], tf.float32)
        threshold = tf.where(threshold <= -1, np.float32(-np.inf), threshold)
        leaves, expected = self._plan(embedding, threshold)
        step = tf.searchsorted(tf.constant(MARGIN_COUNTS), expected)
        margin = tf.gather(self._tuning.margin * tf.constant(MARGIN_FACTORS), step)
        margin = tf.where(threshold > -1, margin, ANY_MARGIN)
        scale = scann_files.APPROXIMATE_EPSILON / margin
        bounded = tf.clip_by_value(threshold, LOWEST, -LOWEST)
        augmented = tf.concat([embedding, -bounded[:, None]], axis=1) * scale[:, None]
        positions, products = self._search(augmented, tf.minimum(leaves, self._most_leaves))
        truncated = positions.row_lengths() > self.limit
        positions = positions[:, : self.limit]
        rows = positions.value_rowids()
        scores = products[:, : self.limit].values
        return {
            "item_ids": tf.gather(self._item_ids, positions.values),
            "scores": tf.minimum(scores / tf.gather(scale, rows) + tf.gather(bounded, rows), 1),
            "row_splits": positions.row_splits,
            "threshold": threshold,
            "expected_count": expected,
            "truncated": truncated | (leaves > self._most_leaves),
        }

    def _plan(self, embedding: tf.Tensor, threshold: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """[B] leaves to search and [B] items expected; see `plan`."""
        similarity = tf.matmul(embedding, self._centroids, transpose_b=True)
        squared = tf.reduce_sum(tf.matmul(embedding, self._scatter) * embedding, 1, keepdims=True)
        width = tf.clip_by_value(tf.sqrt(squared), *WIDTHS)
        below = (threshold[:, None] - similarity) / (self._deviations * width)
        reach = tf.maximum(tf.reduce_min(below, axis=1) + REACH_OF_NEAREST, REACH)[:, None]
        below = tf.cast(below, tf.float64)
        tail = tf.math.erfc(below / np.sqrt(2.0)) / 2
        items = tf.where(
            below <= tf.cast(reach, tf.float64), tf.cast(self._sizes, tf.float64) * tail, 0
        )
        order = tf.argsort(similarity, direction="DESCENDING")
        held = tf.cumsum(tf.gather(items, order, batch_dims=1), axis=1)
        total = held[:, -1:]
        missing = tf.cast(held < self._tuning.cover * total, tf.int32)
        leaves = tf.maximum(tf.reduce_sum(missing, axis=1) + 1, self._tuning.min_leaves)
        leaves = tf.where(threshold == -np.inf, self._sizes.shape[0], leaves)
        return tf.minimum(leaves, self._sizes.shape[0]), tf.cast(total[:, 0], tf.float32)

    def _search(
        self, augmented: tf.Tensor, leaves: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Ragged positions and products of augmented queries [B, n + 1]."""
        # Created inside the function: a handle created outside would not be saved.
        searcher = scann_op().searcher_from_module(self._state)
        limit = min(self.limit + 1, self._size)
        candidates = min(CANDIDATES * limit + MORE_CANDIDATES, self._size)

        def one(query_and_leaves: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
            query, count = query_and_leaves
            positions, products = searcher.search(query, limit, candidates, count)
            # The op has no shape function.
            positions = tf.ensure_shape(tf.cast(positions, tf.int64), [None])
            return positions, tf.ensure_shape(products, [None])

        return tf.map_fn(
            one,
            (augmented, leaves),
            fn_output_signature=(
                tf.RaggedTensorSpec([None], tf.int64, ragged_rank=0),
                tf.RaggedTensorSpec([None], tf.float32, ragged_rank=0),
            ),
        )


def export(
    query_model: EncodeFunction,
    index_directory: Path,
    directory: Path,
    limit: int = DEFAULT_LIMIT,
) -> None:
    """Writes a SavedModel with the signature `retrieve` into a new folder."""
    retriever = RetrievalModule(query_model, index_directory, limit)
    with new_directory(directory) as scratch:
        tf.saved_model.save(
            retriever,
            str(scratch),
            signatures={"retrieve": retriever.retrieve},
            options=tf.saved_model.SaveOptions(namespace_whitelist=["Scann"]),
        )


def _state(directory: Path) -> Any:
    """ScaNN's files as the variables that its op is made from."""

    def text(name: str) -> np.ndarray:
        return np.array([(directory / name).read_bytes()], object)

    return scann_op().ScannState(
        (
            text(scann_files.CONFIG),
            text("partitioner.pb"),
            np.load(directory / "tokens.npy"),
            text("codebook.pb"),
            np.load(directory / "codes.npy"),
            np.zeros((), np.int8),
            np.zeros((), np.float32),
            np.zeros((), np.float32),
            np.load(directory / scann_files.VECTORS),
        )
    )

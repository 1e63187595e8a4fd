"""How well a model in training retrieves: recall of pairs that it does not learn from."""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from pebr_tf.models.two_tower import TwoTower
from pebr_tf.training.batches import Batch
from pebr_tf.training.text_table import TextTable
from pebr_tf.training.workers import numbers_of_all

# Most items ranked besides the relevant ones; items per embedding batch.
ITEM_LIMIT = 20_000
ITEM_BATCH = 2_048


# Workers exchange whole numbers.
_UNIT = 10**9


class Recall(NamedTuple):
    """A mean over queries, and a bound of its standard error."""

    value: float
    error: float


class EmbeddedPairs(NamedTuple):
    """Validation pairs and the items as the model embeds them.

    Attributes:
      items: [N, n] vectors of the items.
      vectors: [Q, n] of the queries.
      tau: [Q].
      rows, places: [P] query and item of each pair.
    """

    items: np.ndarray
    vectors: np.ndarray
    tau: np.ndarray
    rows: np.ndarray
    places: np.ndarray


class RetrievalValidation:
    """Ranks the items for the queries of validation pairs.

    A large catalogue is sampled, always in the same way, which makes recall higher but keeps the
    order of two models.
    """

    def __init__(
        self,
        model: TwoTower,
        pairs: Sequence[Batch],
        items: TextTable,
        k: int,
        strategy: tf.distribute.Strategy,
    ):
        """Chooses the items, whose features must have `item_hash`; the first k places count.

        The strategy is the one in whose scope the model was made.
        """
        self._pairs, self._k, self._strategy = pairs, k, strategy
        hashes = items.features["item_hash"].numpy()
        relevant = np.concatenate([np.empty(0, np.int64), *(pair["item_hash"] for pair in pairs)])
        sampled = np.random.default_rng(0).permutation(len(hashes))[:ITEM_LIMIT]
        chosen = np.union1d(sampled, np.flatnonzero(np.isin(hashes, relevant)))
        order = chosen[np.argsort(hashes[chosen])]
        self._relevant = [tf.searchsorted(hashes[order], pair["item_hash"]) for pair in pairs]
        ids = np.concatenate([np.empty(0, np.int64), *(pair["query_id"] for pair in pairs)])
        _, self._first, self._query, self._pair_count = np.unique(
            ids, return_index=True, return_inverse=True, return_counts=True
        )
        self._items = [
            items.at(tf.constant(order[begin : begin + ITEM_BATCH]))
            for begin in range(0, len(order), ITEM_BATCH)
        ]
        self._embed_items = self._own(model.encode_item)
        self._embed_queries = self._own(lambda batch: model.encode_query(batch).vectors)
        self._tau = self._own(lambda batch: model.encode_query(batch).tau)

    def recall(self) -> Recall:
        """For each query the share of its items among the first k; ties count against an item.

        The numbers are the same on all workers, which must all call it.
        """
        vectors = tf.concat([self._embed_items(batch) for batch in self._items], axis=0)
        hits = []
        for batch, relevant in zip(self._pairs, self._relevant, strict=True):
            scores = tf.matmul(self._embed_queries(batch), vectors, transpose_b=True)
            own = tf.gather(scores, relevant, batch_dims=1)
            # 0 if a score is not a number, else 1 for the item itself and 1 for each that ties it
            # or is better.
            rank = tf.math.count_nonzero(scores >= own[:, tf.newaxis], axis=1)
            hits.append((rank > 0) & (rank <= self._k))
        found = np.bincount(self._query, np.concatenate(hits)) / self._pair_count
        parts = numbers_of_all(self._strategy, round(found.mean() * _UNIT))
        value = statistics.fmean(parts) / _UNIT
        return Recall(value, (value * (1 - value) / len(found)) ** 0.5)

    def embedded(self) -> EmbeddedPairs:
        """The pairs of this worker, by the model as it is."""
        columns = (
            np.concatenate([embed(batch).numpy() for batch in batches])
            for embed, batches in (
                (self._embed_items, self._items),
                (self._embed_queries, self._pairs),
                (self._tau, self._pairs),
            )
        )
        items, vectors, tau = columns
        places = np.concatenate(self._relevant)
        return EmbeddedPairs(items, vectors[self._first], tau[self._first], self._query, places)

    def _own(self, function: Callable[[Batch], tf.Tensor]) -> Callable[[Batch], tf.Tensor]:
        """`function` of a batch, on the first device of this worker."""
        traced = tf.function(lambda batch: self._strategy.run(function, (batch,)), autograph=False)
        return lambda batch: self._strategy.experimental_local_results(traced(batch))[0]

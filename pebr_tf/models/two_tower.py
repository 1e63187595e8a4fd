"""The model that is trained: two towers, the temperature of each query, and the loss."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_recommenders as tfrs

from pebr_tf.config import Config, Loss
from pebr_tf.distributions import Beta, TruncatedExponential
from pebr_tf.distributions.logit import Family
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.layers import BetaNCE, GlobalTemperature, QueryTemperature, RetrievalLoss
from pebr_tf.losses.mle import mle
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.models.fields import item_fields, query_fields, table_sizes
from pebr_tf.models.tau_head import TauHead
from pebr_tf.models.tower import TokenTables, Tower

# One pair in VALIDATION_PART, chosen by its hash, is left out of training for validation.
VALIDATION_PART = 50


class Query(NamedTuple):
    """An encoded query.

    Attributes:
      vectors: [B, n] unit vectors.
      tau: [B] temperatures.
    """

    vectors: tf.Tensor
    tau: tf.Tensor


class TwoTower(tfrs.Model):
    """Queries and items as unit vectors, and how far around a query its items lie."""

    def __init__(self, config: Config, vocabulary_sizes: Mapping[str, int], **kwargs: Any):
        """Makes the model; `vocabulary_sizes` are the words of each vocabulary of the features."""
        super().__init__(**kwargs)
        features, towers = config.features, config.towers
        self._config = config
        query, item = query_fields(features), item_fields(features)
        both = table_sizes((*query, *item), vocabulary_sizes, features.oov_buckets)
        self.tables = TokenTables(both, towers.token_dimension, name="tables")
        item_tables = self.tables
        if not towers.shared_tokens:
            own = table_sizes(item, vocabulary_sizes, features.oov_buckets)
            item_tables = TokenTables(own, towers.token_dimension, name="item_tables")
        longest = features.max_tokens
        self.query_tower = Tower(query, self.tables, towers, longest, name="query_tower")
        self.item_tower = Tower(item, item_tables, towers, longest, name="item_tower")
        self.loss_layer = loss_layer(config.loss)
        self.tau_head = TauHead(
            towers.tau_initial,
            towers.tau_min,
            towers.tau_max,
            towers.tau_hidden_layers,
            name="tau_head",
        )

    def encode_query(self, features: Mapping[str, Any], training: bool = False) -> Query:
        """Query vectors and temperatures of a batch; `query_frequency` only where tau sees it."""
        pooled = self.query_tower.pooled(features, training)
        vectors = self.query_tower(pooled, training=training)
        if isinstance(self.loss_layer, GlobalTemperature):
            return Query(vectors, tf.fill(tf.shape(vectors)[:1], self.loss_layer.temperature))
        if self._config.towers.tau_sees_frequency:
            frequency = tf.math.log1p(features["query_frequency"])
            pooled = tf.concat([pooled, frequency[:, tf.newaxis]], axis=1)
        return Query(vectors, self.tau_head(tf.cast(pooled, tf.float32)))

    def encode_item(self, features: Mapping[str, Any], training: bool = False) -> tf.Tensor:
        """Item vectors [B, n] of a batch."""
        pooled = self.item_tower.pooled(features, training)
        return self.item_tower(pooled, training=training)

    def compute_loss(self, inputs: Mapping[str, Any], training: bool = False) -> tf.Tensor:
        """The mean loss of a batch of pairs; in training without those kept for validation.

        In training each replica has a part of a global batch. It brings what the loss needs of its
        pairs, and computes the loss of all of them over the number of replicas: neither negatives
        nor gradients depend on how many there are.
        """
        query = self.encode_query(inputs, training)
        pairs = {
            "query_vectors": query.vectors,
            "item_vectors": self.encode_item(inputs, training),
            "tau": query.tau,
            **{name: inputs[name] for name in self._loss_inputs()},
        }
        options = {}
        if training:
            pairs = _of_all_replicas(pairs)
            held_out = is_validation(pairs)
            pairs["clicks"] *= tf.cast(~held_out, tf.float32)
            if self._has_law:
                options = {"frequency": pairs["query_frequency"], "held_out": held_out}
        # Divided by the batch's mean so that the scale of the clicks does not change the step.
        weight = pairs["clicks"] / tf.maximum(tf.reduce_mean(pairs["clicks"]), 1e-6)
        return self.loss_layer(
            pairs["query_vectors"],
            pairs["item_vectors"],
            pairs["tau"],
            negatives=self._negatives(pairs),
            sample_weight=weight,
            **options,
        )

    @property
    def _has_law(self) -> bool:
        return self._config.loss.family == "beta_nce" and self._config.loss.law_weight > 0

    def _loss_inputs(self) -> list[str]:
        """The inputs that the loss needs beside the vectors, each [B]."""
        loss = self._config.loss
        query_frequency = loss.gamma or self._has_law
        frequencies = {"item_frequency": loss.log_q is True, "query_frequency": query_frequency}
        return ["clicks", "query_id", "item_hash", *(n for n, used in frequencies.items() if used)]

    def _negatives(self, inputs: Mapping[str, Any]) -> Negatives:
        """Copies are never negatives; items that came with the same query if the config says so.

        Positives are those that the batch itself shows: a list of all known ones would have to
        travel with every row, and grow with the log.
        """
        loss = self._config.loss
        return Negatives(
            item_ids=inputs["item_hash"],
            query_ids=inputs["query_id"] if loss.mask_known_positives else None,
            log_q=_log_frequency(inputs["item_frequency"]) if loss.log_q is True else None,
            log_query_prior=_log_frequency(inputs["query_frequency"]) if loss.gamma else None,
        )


def _of_all_replicas(rows: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Tensors [b] or [b, n] of all replicas, as [B] or [B, n] in the order of the global batch.

    A gradient goes back to the replica that the row is from. With one replica nothing is done.
    """
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return dict(rows)
    gathered = {}
    # Gathered together, because each gathering is a round trip to all workers.
    for dtype in dict.fromkeys(tensor.dtype for tensor in rows.values()):
        own = {name: tensor for name, tensor in rows.items() if tensor.dtype == dtype}
        columns = [t if t.shape.rank == 2 else t[:, tf.newaxis] for t in own.values()]
        widths = [column.shape[1] for column in columns]
        joined = context.all_gather(tf.concat(columns, axis=1), axis=0)
        parts = tf.split(tf.reshape(joined, [-1, sum(widths)]), widths, axis=1)
        for (name, tensor), part in zip(own.items(), parts, strict=True):
            gathered[name] = part if tensor.shape.rank == 2 else part[:, 0]
    return gathered


def is_validation(inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """[B] bool, whether a pair is left for validation; the same for equal pairs."""
    mixed = tf.bitwise.bitwise_xor(inputs["query_id"], inputs["item_hash"])
    return mixed % VALIDATION_PART == 0


def family_of(loss: Loss) -> Family:
    return "beta" if loss.family in ("beta_nce", "mle") else "exponential"


def loss_layer(loss: Loss) -> RetrievalLoss:
    symmetric = {"symmetric_weight": loss.symmetric_weight, "gamma": loss.gamma}
    coverage = loss.coverage_weight, loss.coverage_recall
    temperature = loss.temperature, loss.learn_temperature
    if loss.family == "pointwise":
        return GlobalTemperature(pointwise, {}, *temperature)
    if loss.family == "info_nce":
        return GlobalTemperature(exp_nce, symmetric, *temperature)
    if loss.family == "exp_nce":
        return QueryTemperature(exp_nce, symmetric, TruncatedExponential, *coverage)
    if loss.family == "mle":
        return QueryTemperature(mle, {}, Beta.from_tau, *coverage)
    options = {**symmetric, "delta_beta": loss.delta_beta}
    return BetaNCE(options, loss.convention, loss.law_weight, *coverage)


def _log_frequency(frequency: tf.Tensor) -> tf.Tensor:
    return tf.math.log(tf.maximum(frequency, 1.0))

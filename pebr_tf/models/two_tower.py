"""The model that is trained: two towers, the temperature of each query, and the loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_recommenders as tfrs

from pebr_tf.config import Config, Loss
from pebr_tf.distributions.logit import Family
from pebr_tf.losses import Negatives, registry
from pebr_tf.losses.layer_base import GlobalTemperature, RetrievalLoss
from pebr_tf.models.fields import item_fields, query_fields, table_sizes
from pebr_tf.models.tau_head import TauHead
from pebr_tf.models.tower import TokenTables, Tower

# Pairs whose hashes fall on one of so many are left out of training, to tell when to stop.
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
        """Makes the model.

        Args:
          config: Its sections features, towers and loss.
          vocabulary_sizes: Words of each vocabulary that the features name.
          **kwargs: Of the Keras model.
        """
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
        """The mean loss of a batch of pairs; in training without those kept for validation."""
        query = self.encode_query(inputs, training)
        items = self.encode_item(inputs, training)
        weight = inputs["clicks"]
        if training:
            weight *= tf.cast(~is_validation(inputs), tf.float32)
        # Scaled by the batch's mean, so that how a log counts is no learning rate.
        weight /= tf.maximum(tf.reduce_mean(weight), 1e-6)
        tau = query.tau if self.loss_layer.needs_tau else None
        return self.loss_layer(
            query.vectors, items, tau, negatives=self._negatives(inputs), sample_weight=weight
        )

    def _negatives(self, inputs: Mapping[str, Any]) -> Negatives:
        """Copies are never negatives; items that came with the same query if the config says so.

        Positives are those that the batch itself shows: a list of all known ones would have to
        travel with every row, and grow with the log.
        """
        loss = self._config.loss
        return Negatives(
            item_ids=inputs["item_hash"],
            query_ids=inputs["query_id"] if loss.mask_known_positives else None,
            log_q=_log_frequency(inputs["item_frequency"]) if loss.log_q else None,
            log_query_prior=_log_frequency(inputs["query_frequency"]) if loss.gamma else None,
        )


def is_validation(inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """[B] bool, the pairs that tell when to stop; the same whenever they occur."""
    mixed = tf.bitwise.bitwise_xor(inputs["query_id"], inputs["item_hash"])
    return mixed % VALIDATION_PART == 0


def family_of(loss: Loss) -> Family:
    """Which logit a loss trains."""
    return "beta" if loss.family in ("beta_nce", "mle") else "exponential"


def loss_layer(loss: Loss) -> RetrievalLoss:
    """The Keras layer of a loss that the config describes."""
    symmetric = {"symmetric_weight": loss.symmetric_weight, "gamma": loss.gamma}
    temperature = {"temperature": loss.temperature, "learn_temperature": loss.learn_temperature}
    coverage = {"coverage_weight": loss.coverage_weight, "keep": loss.coverage_keep}
    shape = {"delta_beta": loss.delta_beta, "convention": loss.convention}
    options: dict[str, dict[str, Any]] = {
        "pointwise": temperature,
        "info_nce": {**temperature, **symmetric},
        "mle": coverage,
        "exp_nce": {**symmetric, **coverage},
        "beta_nce": {**symmetric, **coverage, **shape},
    }
    return registry.get_layer(loss.family)(**options[loss.family])


def _log_frequency(frequency: tf.Tensor) -> tf.Tensor:
    return tf.math.log(tf.maximum(frequency, 1.0))

"""The head that learns the law of each query, and the term of the loss that trains it."""

from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.distributions import exact_level
from pebr_tf.distributions.background import beta_of_moments
from pebr_tf.distributions.law import traced_as_is
from pebr_tf.distributions.logit import relevance_logit
from pebr_tf.distributions.query_law import FITTED, LawParameters, LawWeights, initial_weights

# One batch in so many has a coverage term, which weighs as much more.
COVERAGE_INTERVAL = 4


class LawHead(tf.keras.layers.Layer):
    """From a query's temperature, level and training frequency to its law.

    The inputs are constants to the head: a density that trained the towers would collapse them.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**{**kwargs, "dtype": "float32"})
        start = initial_weights()._asdict()
        self.law_weights = LawWeights(
            **{
                name: self.add_weight(
                    name=name,
                    shape=value.shape,
                    initializer=tf.keras.initializers.Constant(value),
                    trainable=name in FITTED,
                )
                for name, value in start.items()
            }
        )

    def call(self, tau: tf.Tensor, level: tf.Tensor, frequency: tf.Tensor) -> LawParameters:
        """The laws of queries with [B] temperatures, levels and training frequencies."""
        values = (tf.stop_gradient(tf.cast(value, tf.float32)) for value in (tau, level, frequency))
        return self.law_weights.laws(*values)

    def get_law(self) -> LawWeights:
        return LawWeights(*(np.float64(value.numpy()) for value in self.law_weights))


@traced_as_is
def law_term(
    head: LawHead,
    query_vectors: tf.Tensor,
    item_vectors: tf.Tensor,
    tau: tf.Tensor,
    frequency: tf.Tensor,
    held_out: tf.Tensor,
) -> tf.Tensor:
    """The negative log-likelihood of a batch's held-out pairs, plus their coverage; a scalar.

    The items of the batch stand for the catalogue: they give each query its level and background.
    Vectors [B, n] and temperatures [B] are constants here, so that only the head learns.
    `frequency` [B] are clicks of each query in the training split. `held_out` [B] is true for pairs
    that the towers do not learn from; without any, the term is 0.
    """
    rows = tf.where(held_out)[:, 0]
    queries, tau, frequency = (
        tf.stop_gradient(tf.cast(tf.gather(value, rows), tf.float32))
        for value in (query_vectors, tau, frequency)
    )
    items = tf.stop_gradient(tf.cast(item_vectors, tf.float32))
    cosines = tf.clip_by_value(tf.matmul(queries, items, transpose_b=True), -1.0, 1.0)
    clicked = tf.gather(cosines, rows, batch_dims=1)
    level = exact_level(relevance_logit(cosines, tau[:, tf.newaxis], "beta"))
    z = (1.0 + tf.cast(cosines, tf.float64)) / 2.0
    background = beta_of_moments(*tf.nn.moments(z, axes=[1]))
    law = head(tau, level, frequency).click_law(background)
    count = tf.cast(tf.size(rows), tf.float64)
    likelihood = tf.math.divide_no_nan(tf.reduce_sum(law.log_prob(clicked)), count)
    # This gradient costs a tenth of a step. The rows choose the batches: all replicas choose alike.
    chosen = tf.reduce_sum(rows) % COVERAGE_INTERVAL == 0
    coverage = tf.cond(
        chosen,
        lambda: COVERAGE_INTERVAL * coverage_distance(law.cdf(clicked)),
        lambda: tf.zeros([], tf.float64),
    )
    return tf.cast(coverage - likelihood, tf.float32)


def coverage_distance(transformed: tf.Tensor) -> tf.Tensor:
    """The mean squared distance of the sorted law.cdf(s) [H] to evenly spaced values.

    A law that is true makes law.cdf(s) uniform, so that a share p of the positives lies below the
    law's quantile of p, for every p at once. This is the Cramer-von Mises statistic over H; its
    gradient goes through the incomplete beta function into the law's parameters.
    """
    # One value more than there are, because the gradient of a sort of nothing fails.
    padded = tf.sort(tf.concat([transformed, tf.ones([1], transformed.dtype)], axis=0))[:-1]
    count = tf.cast(tf.size(transformed), transformed.dtype)
    expected = (tf.range(count) + 0.5) / tf.maximum(count, 1.0)
    squares = tf.math.squared_difference(padded, expected)
    return tf.math.divide_no_nan(tf.reduce_sum(squares), count)

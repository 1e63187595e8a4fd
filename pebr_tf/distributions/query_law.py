"""The law of each query's relevant items: alpha, beta, and the share of clicks that are noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import expit

from pebr_tf.distributions.beta import Beta
from pebr_tf.distributions.click_law import ClickLaw
from pebr_tf.errors import UserError

# log tau, tau * level and log(1 + training frequency): all known before a search.
INPUTS = 3
HIDDEN = 8
# Smallest alpha and beta of a law.
LEAST = 0.05
LOG_CONCENTRATION = (-2.0, 9.0)


class LawParameters(NamedTuple):
    """The laws of B queries.

    Attributes:
      alpha, beta: [B] parameters of the Beta law of the relevant items' z = (1 + cosine) / 2.
      noise_share: [B] share of the clicks that follow the background instead.
    """

    alpha: tf.Tensor
    beta: tf.Tensor
    noise_share: tf.Tensor

    def click_law(self, background: Beta) -> ClickLaw:
        """The law of the queries' clicks over their backgrounds."""
        return ClickLaw(Beta(self.alpha, self.beta), background, self.noise_share)


class LawWeights(NamedTuple):
    """The weights of a law head; arrays, tensors or variables of one float dtype.

    Attributes:
      bias: [2] of the mean's logit and of the log concentration.
      linear: [3, 2].
      inner, inner_bias: [3, 8] and [8], of the hidden units.
      outer: [8, 2].
      noise: [2] logit of the noise share where the frequency is average, and its slope.
      center, scale: [3] mean and deviation of the inputs.
      low, high: [3] range of the standardised inputs, beyond which the law does not change.
    """

    bias: Any
    linear: Any
    inner: Any
    inner_bias: Any
    outer: Any
    noise: Any
    center: Any
    scale: Any
    low: Any
    high: Any

    def laws(self, tau: Any, level: Any, frequency: Any) -> LawParameters:
        """The laws of queries, from [B] values in the dtype of the weights."""
        inputs = tf.stack([tf.math.log(tau), tau * level, tf.math.log1p(frequency)], axis=1)
        x = tf.clip_by_value((inputs - self.center) / self.scale, self.low, self.high)
        hidden = tf.tanh(tf.matmul(x, self.inner) + self.inner_bias)
        raw = self.bias + tf.matmul(x, self.linear) + tf.matmul(hidden, self.outer)
        mean = tf.sigmoid(raw[:, 0])
        concentration = tf.exp(tf.clip_by_value(raw[:, 1], *LOG_CONCENTRATION))
        return LawParameters(
            mean * concentration + LEAST,
            (1.0 - mean) * concentration + LEAST,
            tf.sigmoid(self.noise[0] + self.noise[1] * x[:, 2]),
        )

    def numpy_laws(self, tau: Any, level: Any, frequency: Any) -> tuple[np.ndarray, ...]:
        """Alpha, beta and noise share as `laws` has them, from arrays [B], by NumPy."""
        inputs = np.stack([np.log(tau), tau * level, np.log1p(frequency)], axis=1)
        x = np.clip((inputs - self.center) / self.scale, self.low, self.high)
        hidden = np.tanh(x @ self.inner + self.inner_bias)
        raw = self.bias + x @ self.linear + hidden @ self.outer
        mean, concentration = expit(raw[:, 0]), np.exp(np.clip(raw[:, 1], *LOG_CONCENTRATION))
        return (
            mean * concentration + LEAST,
            (1.0 - mean) * concentration + LEAST,
            expit(self.noise[0] + self.noise[1] * x[:, 2]),
        )

    def to_mapping(self) -> dict[str, list[Any]]:
        """Lists that `from_mapping` turns into the same weights."""
        return {name: value.tolist() for name, value in self._asdict().items()}

    @classmethod
    def from_mapping(cls, name: str, content: Any) -> LawWeights:
        """The weights from lists; raises a UserError if their names or shapes differ."""
        shapes = {key: np.shape(value) for key, value in initial_weights()._asdict().items()}
        try:
            weights = cls(**{key: np.asarray(value, np.float64) for key, value in content.items()})
            fits = all(getattr(weights, key).shape == shape for key, shape in shapes.items())
        except (AttributeError, TypeError, ValueError):
            fits = False
        if not fits or not all(np.isfinite(value).all() for value in weights):
            wanted = ", ".join(f"{key} {list(shape)}" for key, shape in shapes.items())
            raise UserError(f"{name} must have finite numbers {wanted}. Received: {content!r}.")
        return weights


# Weights that are fitted; the others describe the inputs.
FITTED = LawWeights._fields[:6]


def initial_weights(seed: int = 0) -> LawWeights:
    """Weights to start from: every query has the same law, around a cosine of 0.6."""
    generator = np.random.default_rng(seed)
    return LawWeights(
        bias=np.array([1.4, 4.0]),
        linear=np.zeros((INPUTS, 2)),
        inner=generator.normal(0.0, 0.5, (INPUTS, HIDDEN)),
        inner_bias=np.zeros(HIDDEN),
        outer=np.zeros((HIDDEN, 2)),
        noise=np.array([-3.0, 0.0]),
        center=np.array([-3.0, -0.3, 2.0]),
        scale=np.array([0.5, 0.1, 1.5]),
        low=np.full(INPUTS, -4.0),
        high=np.full(INPUTS, 4.0),
    )

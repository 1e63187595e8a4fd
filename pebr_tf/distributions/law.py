"""The contract that every law of the cosine keeps."""

import abc
import math
from typing import Any

import tensorflow as tf

from pebr_tf.distributions import domain
from pebr_tf.distributions.special import Z_MARGIN

# The laws have no Python control flow on tensors. Left to itself AutoGraph would rewrite them, and
# tfp below them, at every first call in a graph: twenty seconds for a training step.
traced_as_is = tf.autograph.experimental.do_not_convert


class CosineLaw(abc.ABC):
    """A probability law on cosines s in [-1, 1].

    Parameters and arguments broadcast against each other. Values are computed in float64 and
    returned in float32, or in float64 when any input is a float64 tensor or array. Outside the
    domain a ValueError is raised eagerly, and NaN returned in graphs. Everything is differentiable
    in the argument and in the parameters.

    Subclasses implement the law of z = (1 + s) / 2 in float64: `_log_prob`, `_cdf`, `_quantile`
    and, where 1 - cdf loses digits, `_survival`.
    """

    def __init__(self, *parameters: Any):
        self._parameters = parameters

    @traced_as_is
    def log_prob(self, s: Any) -> tf.Tensor:
        """Log density at the cosine `s`, with respect to s.

        At the ends of the support, where a density may be 0 or infinite, the value is taken
        `Z_MARGIN` inside: finite, with a finite gradient.
        """
        z = tf.clip_by_value(self._unit(s), Z_MARGIN, 1.0 - Z_MARGIN)
        return self._cast(self._log_prob(z) - math.log(2.0), s)

    @traced_as_is
    def cdf(self, s: Any) -> tf.Tensor:
        """P(x < s), the share of the relevant items below the cosine `s`."""
        return self._cast(self._cdf(self._unit(s)), s)

    @traced_as_is
    def survival(self, s: Any) -> tf.Tensor:
        """P(x >= s), the share of the relevant items at or above the cosine `s`."""
        return self._cast(self._survival(self._unit(s)), s)

    @traced_as_is
    def threshold(self, recall: Any) -> tf.Tensor:
        """The cosine t with P(x >= t) = recall: above it lies a share `recall` of the relevant
        items.

        `recall` is in [0, 1], the cosines in [-1, 1]; they fall as `recall` rises.
        """
        recall64 = domain.float64_within("recall", recall, 0.0, 1.0)
        z = tf.clip_by_value(self._quantile(1.0 - recall64), 0.0, 1.0)
        return self._cast(2.0 * z - 1.0, recall)

    @abc.abstractmethod
    def _log_prob(self, z: tf.Tensor) -> tf.Tensor:
        """Log density of z, for z inside (0, 1)."""

    @abc.abstractmethod
    def _cdf(self, z: tf.Tensor) -> tf.Tensor:
        """P(Z < z)."""

    @abc.abstractmethod
    def _quantile(self, p: tf.Tensor) -> tf.Tensor:
        """The z with P(Z < z) = p."""

    def _survival(self, z: tf.Tensor) -> tf.Tensor:
        return 1.0 - self._cdf(z)

    def _unit(self, s: Any) -> tf.Tensor:
        return (1.0 + domain.float64_within("cosine", s, -1.0, 1.0)) / 2.0

    def _cast(self, value: tf.Tensor, *arguments: Any) -> tf.Tensor:
        return tf.cast(value, domain.result_dtype(*arguments, *self._parameters))

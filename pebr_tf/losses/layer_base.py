"""What the losses' Keras layers share: temperature, coverage term, and the one reduction."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import tensorflow as tf

from pebr_tf.distributions import CosineLaw
from pebr_tf.distributions.law import traced_as_is
from pebr_tf.losses import similarity
from pebr_tf.losses.coverage import CoverageMetric, coverage_loss, require_recall
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.shapes import Shapes
from pebr_tf.losses.softmax import require_weight

# Below, a logit s / tau loses float32's digits; above, it hardly tells candidates apart.
TEMPERATURE_LOW, TEMPERATURE_HIGH = 0.002, 1.0


class RetrievalLoss(tf.keras.layers.Layer):
    """The mean of a loss over a batch of (query, item) pairs.

    A layer and no `tf.keras.losses.Loss`, because it owns a variable or metrics that the model must
    track. It computes in float32 under every precision policy.
    """

    # Whether `call` takes the temperature from the query; otherwise the layer has one of its own.
    needs_tau: ClassVar[bool]

    def __init__(
        self, function: Callable[..., tf.Tensor], options: dict[str, Any], **kwargs: Any
    ) -> None:
        """Makes the layer of a loss with [B] values; the subclass's constructor takes `options`."""
        super().__init__(**{**kwargs, "dtype": "float32"})
        self._function = function
        self._options = options

    def call(
        self,
        query_vectors: Any,
        item_vectors: Any,
        tau: Any = None,
        negatives: Negatives | None = None,
        sample_weight: Any = None,
    ) -> tf.Tensor:
        """The mean loss.

        Args:
          query_vectors: [B, n] vectors.
          item_vectors: [B, n] vectors; row i is the positive of query i.
          tau: [B] temperatures where `needs_tau`, else None. Float32 under mixed precision, too:
            its gradient, of the order of 1 / tau^2, does not fit into float16.
          negatives: Masks and corrections.
          sample_weight: [B] weights.

        Returns:
          The sum of weight * loss over the global batch size, a scalar. Under a distribution
          strategy the replicas' values add up to the mean, as their gradients do.
        """
        return self._mean(query_vectors, item_vectors, tau, negatives, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), **self._options}

    @traced_as_is
    def _mean(
        self,
        query_vectors: Any,
        item_vectors: Any,
        tau: Any,
        negatives: Negatives | None,
        sample_weight: Any,
    ) -> tf.Tensor:
        tau = self._temperature_of(tau)
        loss = self._function(
            query_vectors, item_vectors, tau, negatives=negatives, **self._options
        )
        if sample_weight is not None:
            sample_weight = tf.cast(sample_weight, tf.float32)
            shapes = Shapes()
            shapes.require("loss", loss, "B")
            shapes.require("sample_weight", sample_weight, "B")
        cosines = similarity.positive_cosines(query_vectors, item_vectors)
        loss += self._coverage_term(cosines, tau, sample_weight)
        return tf.nn.compute_average_loss(tf.cast(loss, tf.float32), sample_weight=sample_weight)

    def _temperature_of(self, tau: Any) -> Any:
        """The temperature that the loss gets."""
        raise NotImplementedError

    def _coverage_term(
        self, cosines: tf.Tensor, tau: Any, sample_weight: tf.Tensor | None
    ) -> tf.Tensor | float:
        """What is added to the loss for the law's calibration."""
        return 0.0


class GlobalTemperature(RetrievalLoss):
    """A loss with one temperature of its own, fixed or learned."""

    needs_tau = False

    def __init__(
        self,
        function: Callable[..., tf.Tensor],
        options: dict[str, Any],
        temperature: float,
        learn_temperature: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(function, options, **kwargs)
        if not TEMPERATURE_LOW <= temperature <= TEMPERATURE_HIGH:
            raise ValueError(
                f"temperature must be in [{TEMPERATURE_LOW}, {TEMPERATURE_HIGH}]. "
                f"Received: {temperature}."
            )
        self._initial_temperature = temperature
        self.log_temperature = self.add_weight(
            name="log_temperature",
            shape=(),
            initializer=tf.keras.initializers.Constant(math.log(temperature)),
            trainable=learn_temperature,
            constraint=_clip_log_temperature,
        )

    @property
    def temperature(self) -> tf.Tensor:
        """The temperature now, a scalar."""
        return tf.exp(self.log_temperature)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "temperature": self._initial_temperature,
            "learn_temperature": self.log_temperature.trainable,
        }

    def _temperature_of(self, tau: Any) -> tf.Tensor:
        if tau is not None:
            raise ValueError(
                f"{type(self).__name__} has a temperature of its own and requires tau=None. "
                f"Received: tau of shape {tuple(tf.convert_to_tensor(tau).shape)}."
            )
        return self.temperature


def _clip_log_temperature(log_temperature: tf.Tensor) -> tf.Tensor:
    # The variable itself is held: clipped where it is used, it would get no gradient outside.
    return tf.clip_by_value(log_temperature, math.log(TEMPERATURE_LOW), math.log(TEMPERATURE_HIGH))


class QueryTemperature(RetrievalLoss):
    """A loss that gives each query a law: its coverage is measured, and trained on demand."""

    needs_tau = True

    def __init__(
        self,
        function: Callable[..., tf.Tensor],
        options: dict[str, Any],
        coverage_weight: float,
        recall: Sequence[float],
        **kwargs: Any,
    ) -> None:
        super().__init__(function, options, **kwargs)
        self._coverage_weight = require_weight("coverage_weight", coverage_weight)
        self._recall = require_recall(recall)
        self.coverage = [CoverageMetric(level) for level in self._recall]

    def law(self, tau: Any) -> CosineLaw:
        """The law of relevant items' cosines that the temperatures [B] stand for."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "coverage_weight": self._coverage_weight,
            "recall": list(self._recall),
        }

    def _temperature_of(self, tau: Any) -> Any:
        if tau is None:
            raise ValueError(f"{type(self).__name__} requires tau of shape [B]. Received: None.")
        return tau

    def _coverage_term(
        self, cosines: tf.Tensor, tau: Any, sample_weight: tf.Tensor | None
    ) -> tf.Tensor | float:
        law = self.law(tf.cast(tau, cosines.dtype))
        survival = law.survival(cosines)
        for metric in self.coverage:
            metric.update_state(survival, sample_weight)
        if not self._coverage_weight:
            return 0.0
        return self._coverage_weight * coverage_loss(law, cosines, self._recall)

"""The losses as Keras layers: temperature, coverage term, and the one reduction."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pebr_tf.distributions import Beta, CosineLaw
from pebr_tf.distributions.beta import Convention
from pebr_tf.distributions.law import traced_as_is
from pebr_tf.losses import similarity
from pebr_tf.losses.beta_nce import beta_nce
from pebr_tf.losses.coverage import CoverageMetric, coverage_loss
from pebr_tf.losses.law_head import LawHead, law_term
from pebr_tf.losses.negatives import Negatives

# Below, a logit s / tau loses float32's digits; above, it hardly tells candidates apart.
TEMPERATURE_LOW, TEMPERATURE_HIGH = 0.002, 1.0


class RetrievalLoss(tf.keras.layers.Layer):
    """The mean of a loss over a batch of (query, item) pairs.

    A layer rather than a `tf.keras.losses.Loss`, because it owns a variable or metrics that the
    model must track. It computes in float32 under every precision policy.
    """

    def __init__(self, function: Callable[..., tf.Tensor], options: dict[str, Any]) -> None:
        """Makes the layer of a loss with [B] values, which also takes `options`."""
        super().__init__(dtype="float32")
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
          tau: [B] temperatures, for `QueryTemperature`. Float32 under mixed precision, too: its
            gradient, of the order of 1 / tau^2, does not fit into float16.
          negatives: Masks and corrections.
          sample_weight: [B] weights.

        Returns:
          The sum of weight * loss over the global batch size, a scalar. Under a distribution
          strategy the replicas' values add up to the mean, as their gradients do.
        """
        return self._mean(query_vectors, item_vectors, tau, negatives, sample_weight)

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
        cosines = similarity.positive_cosines(query_vectors, item_vectors)
        loss += self._coverage_term(cosines, tau, sample_weight)
        return tf.nn.compute_average_loss(tf.cast(loss, tf.float32), sample_weight=sample_weight)

    def _temperature_of(self, tau: Any) -> Any:
        return tau

    def _coverage_term(
        self, cosines: tf.Tensor, tau: Any, sample_weight: tf.Tensor | None
    ) -> tf.Tensor | float:
        """What is added to the loss for the law's calibration."""
        return 0.0


class GlobalTemperature(RetrievalLoss):
    """A loss with one temperature of its own, fixed or learned."""

    def __init__(
        self,
        function: Callable[..., tf.Tensor],
        options: dict[str, Any],
        temperature: float = 0.05,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(function, options)
        self.log_temperature = self.add_weight(
            name="log_temperature",
            shape=(),
            initializer=tf.keras.initializers.Constant(math.log(temperature)),
            trainable=learn_temperature,
            constraint=_clip_log_temperature,
        )

    @property
    def temperature(self) -> tf.Tensor:
        return tf.exp(self.log_temperature)

    def _temperature_of(self, tau: Any) -> tf.Tensor:
        return self.temperature


def _clip_log_temperature(log_temperature: tf.Tensor) -> tf.Tensor:
    # The variable itself is held: clipped where it is used, it would get no gradient outside.
    return tf.clip_by_value(log_temperature, math.log(TEMPERATURE_LOW), math.log(TEMPERATURE_HIGH))


class QueryTemperature(RetrievalLoss):
    """A loss that gives each query a law: its coverage is measured, and trained on demand."""

    def __init__(
        self,
        function: Callable[..., tf.Tensor],
        options: dict[str, Any],
        law: Callable[[Any], CosineLaw],
        coverage_weight: float = 0.0,
        recall: Sequence[float] = (0.9,),
    ) -> None:
        """Makes the layer of a loss; `law` maps temperatures [B] to the laws of relevant cosines.

        `coverage_weight` is the weight of `coverage_loss`, 0 or more. Coverage is measured and
        trained at the shares `recall`, in (0, 1).
        """
        super().__init__(function, options)
        self.law = law
        self._coverage_weight = coverage_weight
        self._recall = recall
        self.coverage = [CoverageMetric(share) for share in recall]

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


class BetaNCE(QueryTemperature):
    """`beta_nce` as a layer, with the head that learns the law of each query's relevant items.

    `options` are those of the function. `law_weight` is the weight of `law_term`, which trains
    `law_head` on held-out pairs; 0 leaves both out. The towers learn nothing from it. `convention`
    decides which law a temperature stands for, and so what is covered; the loss does not depend on
    it. See `Beta.from_tau`.
    """

    def __init__(
        self,
        options: dict[str, Any],
        convention: Convention = "pdf",
        law_weight: float = 1.0,
        coverage_weight: float = 0.0,
        recall: Sequence[float] = (0.9,),
    ) -> None:
        super().__init__(beta_nce, options, self._law_over_uniform, coverage_weight, recall)
        self._convention = convention
        self._law_weight = law_weight
        self.law_head = LawHead(name="law_head") if law_weight else None

    def call(
        self,
        query_vectors: Any,
        item_vectors: Any,
        tau: Any = None,
        negatives: Negatives | None = None,
        sample_weight: Any = None,
        frequency: Any = None,
        held_out: Any = None,
    ) -> tf.Tensor:
        """The mean loss, as in the base class, and the law term of the held-out pairs.

        `frequency` [B] are the clicks of each query in the training split. `held_out` [B] are true
        for pairs that the towers do not learn from, whose weight must be 0. Without them, there is
        no law term.
        """
        loss = self._mean(query_vectors, item_vectors, tau, negatives, sample_weight)
        if self.law_head is None or held_out is None:
            return loss
        term = law_term(self.law_head, query_vectors, item_vectors, tau, frequency, held_out)
        # Every replica computes the term of the whole batch.
        return loss + tf.nn.scale_regularization_loss(self._law_weight * term)

    def _law_over_uniform(self, tau: Any) -> CosineLaw:
        delta_beta = self._options.get("delta_beta", 0.0)
        if delta_beta == 0.0:
            return Beta.from_tau(tau, self._convention)
        return Beta(1.0, 1.0 + delta_beta).tilted(tau, self._convention)

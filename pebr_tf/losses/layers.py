"""The losses as Keras layers, and by the names that the config uses.

Arguments that the layers share:

  temperature        the temperature, or its first value if learn_temperature
  learn_temperature  whether the temperature is trained
  negative_weight    weight of one negative, 0 or more
  symmetric_weight   weight of the item -> query term, 0 or more
  gamma              query prior correction of that term, 0 or more
  coverage_weight    weight of `coverage_loss`, 0 or more
  recall               shares in (0, 1) at which coverage is measured and trained

The others are arguments of the Keras layer.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pebr_tf.distributions import Beta, CosineLaw, TruncatedExponential
from pebr_tf.distributions.beta import Convention, require_convention
from pebr_tf.losses.beta_nce import beta_nce
from pebr_tf.losses.exp_nce import exp_nce, info_nce
from pebr_tf.losses.law_head import LawHead, law_term
from pebr_tf.losses.layer_base import GlobalTemperature, QueryTemperature, RetrievalLoss
from pebr_tf.losses.mle import mle
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.losses.softmax import require_symmetric, require_weight

_register = tf.keras.utils.register_keras_serializable("pebr_tf")


@_register
class Pointwise(GlobalTemperature):
    """`pointwise` as a layer."""

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        learn_temperature: bool = False,
        negative_weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        require_weight("negative_weight", negative_weight)
        options = {"negative_weight": negative_weight}
        super().__init__(pointwise, options, temperature, learn_temperature, **kwargs)


@_register
class InfoNCE(GlobalTemperature):
    """`info_nce` as a layer."""

    def __init__(
        self,
        *,
        temperature: float = 0.05,
        learn_temperature: bool = False,
        symmetric_weight: float = 0.0,
        gamma: float = 0.0,
        **kwargs: Any,
    ) -> None:
        options = require_symmetric(symmetric_weight, gamma)
        super().__init__(info_nce, options, temperature, learn_temperature, **kwargs)


@_register
class ExpNCE(QueryTemperature):
    """`exp_nce` as a layer, with the coverage of its truncated exponential law."""

    def __init__(
        self,
        *,
        symmetric_weight: float = 0.0,
        gamma: float = 0.0,
        coverage_weight: float = 0.0,
        recall: Sequence[float] = (0.9,),
        **kwargs: Any,
    ) -> None:
        options = require_symmetric(symmetric_weight, gamma)
        super().__init__(exp_nce, options, coverage_weight, recall, **kwargs)

    def law(self, tau: Any) -> CosineLaw:
        """The truncated exponential law of each query."""
        return TruncatedExponential(tau)


@_register
class BetaNCE(QueryTemperature):
    """`beta_nce` as a layer, with the head that learns the law of each query's relevant items.

    `law_weight` is the weight of `law_term`, which trains `law_head` on held-out pairs; 0 leaves
    both out. The towers learn nothing from it. `delta_beta` is beta_g - beta_k, above -1; 0 is the
    paper's final loss. `convention` decides which law a temperature stands for, and so what is
    covered; the loss does not depend on it. See `Beta.from_tau`.
    """

    def __init__(
        self,
        *,
        symmetric_weight: float = 0.0,
        gamma: float = 0.0,
        delta_beta: float = 0.0,
        convention: Convention = "pdf",
        law_weight: float = 1.0,
        coverage_weight: float = 0.0,
        recall: Sequence[float] = (0.9,),
        **kwargs: Any,
    ) -> None:
        if not delta_beta > -1.0:
            raise ValueError(
                "delta_beta must be above -1, or the law over a uniform background has no density. "
                f"Received: {delta_beta}."
            )
        options = {**require_symmetric(symmetric_weight, gamma), "delta_beta": delta_beta}
        super().__init__(beta_nce, options, coverage_weight, recall, **kwargs)
        self._convention = require_convention(convention)
        self._law_weight = require_weight("law_weight", law_weight)
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

    def law(self, tau: Any) -> CosineLaw:
        """The Beta law of each query, over a uniform background."""
        delta_beta = self._options["delta_beta"]
        if delta_beta == 0.0:
            return Beta.from_tau(tau, self._convention)
        return Beta(1.0, 1.0 + delta_beta).tilted(tau, self._convention)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        ours = {"convention": self._convention, "law_weight": self._law_weight}
        return {**super().get_config(), **ours}


@_register
class MLE(QueryTemperature):
    """`mle` as a layer, with the coverage of the law of each temperature."""

    def __init__(
        self,
        *,
        negative_weight: float = 1.0,
        coverage_weight: float = 0.0,
        recall: Sequence[float] = (0.9,),
        **kwargs: Any,
    ) -> None:
        require_weight("negative_weight", negative_weight)
        options = {"negative_weight": negative_weight}
        super().__init__(mle, options, coverage_weight, recall, **kwargs)

    def law(self, tau: Any) -> CosineLaw:
        """The Beta law of each query, over a uniform background."""
        return Beta.from_tau(tau)


_LOSSES: dict[str, tuple[Callable[..., tf.Tensor], type[RetrievalLoss]]] = {
    "pointwise": (pointwise, Pointwise),
    "info_nce": (info_nce, InfoNCE),
    "exp_nce": (exp_nce, ExpNCE),
    "beta_nce": (beta_nce, BetaNCE),
    "mle": (mle, MLE),
}
NAMES = tuple(_LOSSES)


def get(name: str) -> Callable[..., tf.Tensor]:
    """The function of a loss: (query_vectors, item_vectors, tau, *, negatives, ...) -> [B]."""
    return _entry(name)[0]


def get_layer(name: str) -> type[RetrievalLoss]:
    """The Keras layer class of a loss."""
    return _entry(name)[1]


def _entry(name: str) -> tuple[Callable[..., tf.Tensor], type[RetrievalLoss]]:
    if name not in _LOSSES:
        raise ValueError(f"The loss must be one of {', '.join(NAMES)}. Received: {name!r}.")
    return _LOSSES[name]

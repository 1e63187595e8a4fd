"""From a query's law and the share to keep, to the cosine where its list ends."""

from typing import Any

import tensorflow as tf

from pebr_tf.distributions import Beta, CosineLaw, LevelLaw, TruncatedExponential
from pebr_tf.distributions.beta import Convention, require_convention, require_dimension

# Law -> the parameters that `call` needs, each [B].
PARAMETERS = {
    "beta": ("alpha", "beta"),
    "beta_nce": ("tau",),
    "exp_nce": ("tau",),
    "level": ("tau", "level"),
}


@tf.keras.utils.register_keras_serializable("pebr_tf")
class ThresholdLayer(tf.keras.layers.Layer):
    """The cosine above which a share `recall` of a query's relevant items lies, by its law.

    It has no weights. In a graph, and so in a SavedModel, input outside the law's domain gives NaN.
    """

    def __init__(
        self,
        law: str = "beta",
        convention: Convention = "pdf",
        dimension: int | None = None,
        **kwargs: Any,
    ):
        """Makes the layer.

        Args:
          law: "beta" (alpha, beta), "beta_nce" (tau), "exp_nce" (tau) or "level" (tau, level).
          convention: What a BetaNCE temperature means; see `Beta.from_tau`.
          dimension: The dimension n of the vectors, for the law's marginal on their sphere; None
            takes the law as one of the cosine itself.
          **kwargs: Of the Keras layer.

        Raises:
          ValueError: An unknown law or convention, or a dimension that does not fit.
        """
        super().__init__(**kwargs)
        if law not in PARAMETERS:
            raise ValueError(f"law must be one of {', '.join(PARAMETERS)}. Received: {law!r}.")
        require_convention(convention)
        if dimension is not None:
            require_dimension(dimension)
            if law == "level":
                raise ValueError(
                    "dimension must be None for the level law, whose corpus already knows the "
                    f"sphere. Received: {dimension}."
                )
        self.law, self.convention, self.dimension = law, convention, dimension

    def call(self, parameters: dict[str, tf.Tensor], recall: tf.Tensor) -> tf.Tensor:
        """Thresholds [B] in [-1, 1].

        Args:
          parameters: The law's parameters by name, [B] each.
          recall: Shares in [0, 1], [B] or one number.
        """
        return self.law_of(parameters).threshold(recall)

    def law_of(self, parameters: dict[str, tf.Tensor]) -> CosineLaw:
        """The law itself, for its density, CDF or mean."""
        missing = [name for name in PARAMETERS[self.law] if name not in parameters]
        if missing:
            raise ValueError(
                f"the {self.law} law requires {' and '.join(PARAMETERS[self.law])}. "
                f"Received: {', '.join(sorted(parameters)) or 'nothing'}."
            )
        if self.law == "level":
            return LevelLaw(parameters["tau"], parameters["level"], self.convention)
        if self.law == "beta":
            law: Beta | TruncatedExponential = Beta(parameters["alpha"], parameters["beta"])
        elif self.law == "beta_nce":
            law = Beta.from_tau(parameters["tau"], self.convention)
        else:
            law = TruncatedExponential(parameters["tau"])
        return law if self.dimension is None else law.on_sphere(self.dimension)

    def get_config(self) -> dict[str, Any]:
        ours = {"law": self.law, "convention": self.convention, "dimension": self.dimension}
        return {**super().get_config(), **ours}

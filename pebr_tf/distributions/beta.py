"""The Beta law: what BetaNCE assumes of the relevant items' cosines (paper, section 3.2.2)."""

from __future__ import annotations

from typing import Any, Literal

import tensorflow as tf
import tensorflow_probability as tfp

from pebr_tf.distributions import domain
from pebr_tf.distributions.law import CosineLaw
from pebr_tf.distributions.special import betainc, quantile

Convention = Literal["pdf", "paper"]

# Accuracy is promised for alpha and beta in [1e-2, 1e4]; beyond, to these ends, values are finite.
PARAMETER_LOW, PARAMETER_HIGH = 1e-3, 1e6


class Beta(CosineLaw):
    """Beta(alpha, beta) on z = (1 + s) / 2, density z^(alpha - 1) * (1 - z)^(beta - 1) / B.

    Its CDF is the regularised incomplete beta function I_z(alpha, beta).
    """

    def __init__(self, alpha: Any, beta: Any):
        """Makes the law.

        Args:
          alpha: Values in [1e-3, 1e6].
          beta: Values in [1e-3, 1e6], broadcastable with `alpha`. The Python number 1 gives
            `threshold` its closed form, t = 2 * (1 - recall)^(1 / alpha) - 1.
        """
        super().__init__(alpha, beta)
        self.alpha = domain.float64_within("alpha", alpha, PARAMETER_LOW, PARAMETER_HIGH)
        self.beta = domain.float64_within("beta", beta, PARAMETER_LOW, PARAMETER_HIGH)
        self._is_power = isinstance(beta, (int, float)) and beta == 1

    @classmethod
    def from_tau(cls, tau: Any, convention: Convention = "pdf") -> Beta:
        """The law that a BetaNCE temperature stands for, over a uniform background.

        Args:
          tau: Temperatures in (0, 1000].
          convention: "pdf" gives alpha = 1 + 1 / tau: the uniform density times z^(1 / tau), which
            is what the loss trains. "paper" gives alpha = 1 / tau as its equation 2 prints it, one
            less than its own definition of r(d, q) implies.
        """
        alpha = tilted_alpha(1.0, tau, convention)
        return cls(tf.cast(alpha, domain.result_dtype(tau)), 1.0)

    def tilted(self, tau: Any, convention: Convention = "pdf") -> Beta:
        """The law of the relevant items over this one as background: its density * z^(1 / tau)."""
        alpha = tilted_alpha(self.alpha, tau, convention)
        dtype = domain.result_dtype(tau, *self._parameters)
        return Beta(tf.cast(alpha, dtype), tf.cast(self.beta, dtype))

    def on_sphere(self, dimension: int) -> Beta:
        """The marginal of the density on the unit sphere in R^n that is this one times the area.

        The sphere's area at cosine s is (1 - s^2)^((n - 3) / 2): again a Beta law, with (n - 3) / 2
        added to both parameters (paper, appendix A). For n = 3 it is the law itself.
        """
        if not isinstance(dimension, int) or dimension < 3:
            raise ValueError(
                f"dimension must be an integer of at least 3. Received: {dimension!r}."
            )
        shift = (dimension - 3) / 2
        dtype = domain.result_dtype(*self._parameters)
        return Beta(tf.cast(self.alpha + shift, dtype), tf.cast(self.beta + shift, dtype))

    def _log_prob(self, z: tf.Tensor) -> tf.Tensor:
        return (
            (self.alpha - 1.0) * tf.math.log(z)
            + (self.beta - 1.0) * tf.math.log1p(-z)
            - tfp.math.lbeta(self.alpha, self.beta)
        )

    def _cdf(self, z: tf.Tensor) -> tf.Tensor:
        return betainc(self.alpha, self.beta, z)

    def _survival(self, z: tf.Tensor) -> tf.Tensor:
        return betainc(self.beta, self.alpha, 1.0 - z)

    def _quantile(self, p: tf.Tensor) -> tf.Tensor:
        if self._is_power:
            return tf.pow(p, 1.0 / self.alpha)
        # The guess cannot stand alone: tfp 0.24 returns its starting value, off by up to .13, where
        # p is exactly 1/2, the paper's default cut-off, and stops early for roots near z = 1/2.
        guess = tfp.math.betaincinv(*(tf.stop_gradient(v) for v in (self.alpha, self.beta, p)))
        return quantile(self._cdf, self._log_prob, tf.broadcast_to(p, tf.shape(guess)), guess)


def require_convention(convention: Convention) -> Convention:
    """The convention itself, when it is one."""
    if convention not in ("pdf", "paper"):
        raise ValueError(f"convention must be 'pdf' or 'paper'. Received: {convention!r}.")
    return convention


def tilted_alpha(background_alpha: Any, tau: Any, convention: Convention) -> tf.Tensor:
    """The first parameter of background * z^(1 / tau): alpha_k + 1 / tau, or one less (paper)."""
    require_convention(convention)
    tau = domain.float64_within("tau", tau, 0.0, 1e3, low_open=True)
    return background_alpha + 1.0 / tau - (1.0 if convention == "paper" else 0.0)

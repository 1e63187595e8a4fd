"""The law of a query's clicks: mostly on its relevant items, the rest anywhere in the catalogue."""

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

from pebr_tf.distributions import domain
from pebr_tf.distributions.beta import Beta
from pebr_tf.distributions.law import CosineLaw


class ClickLaw(CosineLaw):
    """(1 - noise_share) * relevant + noise_share * background; thresholds cut the relevant part."""

    def __init__(self, relevant: Beta, background: Beta, noise_share: Any):
        """Makes the law; `noise_share` holds values in [0, 1]."""
        super().__init__(*relevant._parameters, *background._parameters, noise_share)
        self.relevant, self.background = relevant, background
        self.noise_share = domain.float64_within("noise_share", noise_share, 0.0, 1.0)

    def _log_prob(self, z: tf.Tensor) -> tf.Tensor:
        relevant = tf.math.log1p(-self.noise_share) + self.relevant._log_prob(z)
        background = tf.math.log(self.noise_share) + self.background._log_prob(z)
        return tfp.math.log_add_exp(relevant, background)

    def _cdf(self, z: tf.Tensor) -> tf.Tensor:
        return self._mixed(self.relevant._cdf(z), self.background._cdf(z))

    def _survival(self, z: tf.Tensor) -> tf.Tensor:
        return self._mixed(self.relevant._survival(z), self.background._survival(z))

    def _quantile(self, p: tf.Tensor) -> tf.Tensor:
        return self.relevant._quantile(p)

    def _mixed(self, relevant: tf.Tensor, background: tf.Tensor) -> tf.Tensor:
        return relevant + self.noise_share * (background - relevant)

"""Laws of the cosine between a query and its relevant items.

A law lives on cosines s in [-1, 1]; z = (1 + s) / 2 is the same point on the unit interval. Every
law has the same four methods (`CosineLaw`): `log_prob`, `cdf`, `survival` and `threshold`.
docs/maths.md derives the formulas.
"""

from pebr_tf.distributions.background import background_law
from pebr_tf.distributions.beta import Beta
from pebr_tf.distributions.exponential import TruncatedExponential
from pebr_tf.distributions.law import CosineLaw
from pebr_tf.distributions.level import exact_level

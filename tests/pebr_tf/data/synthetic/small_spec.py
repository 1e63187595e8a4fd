"""The spec of the small world."""

from pebr_tf.data.synthetic import SyntheticSpec

SMALL = SyntheticSpec(items=300, queries=700, clicks=2_300, seed=3, noise=0.1)

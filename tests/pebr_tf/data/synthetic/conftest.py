"""A small world that the tests of one run share."""

import pytest

from pebr_tf.data.synthetic import SyntheticSpec, make_world


@pytest.fixture(scope="session")
def small_spec():
    return SyntheticSpec(items=300, queries=700, clicks=2_300, seed=3, noise=0.1)


@pytest.fixture(scope="session")
def small_world(small_spec):
    return make_world(small_spec)


@pytest.fixture(scope="session")
def default_world():
    return make_world(SyntheticSpec())

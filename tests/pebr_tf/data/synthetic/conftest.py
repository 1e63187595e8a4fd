"""A small world that the tests of one run share."""

import pytest

from pebr_tf.data.synthetic import SyntheticSpec, World, make_world

SMALL = SyntheticSpec(items=600, queries=1_500, clicks=5_000, seed=3, noise=0.1)


@pytest.fixture(scope="session")
def small_spec() -> SyntheticSpec:
    return SMALL


@pytest.fixture(scope="session")
def small_world() -> World:
    return make_world(SMALL)


@pytest.fixture(scope="session")
def default_world() -> World:
    return make_world(SyntheticSpec())

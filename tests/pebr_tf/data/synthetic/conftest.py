"""A small world that the tests of one run share."""

import pytest
from small_spec import SMALL

from pebr_tf.data.synthetic import SyntheticSpec, make_world


@pytest.fixture(scope="session")
def small_spec():
    return SMALL


@pytest.fixture(scope="session")
def small_world():
    return make_world(SMALL)


@pytest.fixture(scope="session")
def default_world():
    return make_world(SyntheticSpec())

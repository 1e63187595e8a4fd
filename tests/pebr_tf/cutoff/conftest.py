"""Candidates that several files of tests look at."""

import pytest
from cutoff_worlds import make_world

from pebr_tf.cutoff.candidates import collect_candidates
from pebr_tf.cutoff.level_temperature import level_temperatures_for


@pytest.fixture(scope="session")
def world():
    return make_world()


@pytest.fixture(scope="session", params=["beta", "exponential"])
def candidates(request, world):
    """All items are candidates."""
    corpus, queries, relevant = world
    return collect_candidates(
        corpus, queries, relevant, request.param, level_temperatures_for(None), len(corpus)
    )

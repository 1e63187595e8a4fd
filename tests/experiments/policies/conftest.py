"""Candidates that several test files use."""

import pytest
from cutoff_worlds import make_world

from pebr_tf.cutoff import collect_candidates


@pytest.fixture(scope="session")
def world():
    """60 queries, 300 items."""
    return make_world()


@pytest.fixture(scope="session", params=["beta", "exponential"])
def all_items(request, world):
    """Candidates of both families; all items are candidates."""
    corpus, queries, relevant = world
    return collect_candidates(corpus, queries, relevant, request.param, (1.0,), len(corpus))

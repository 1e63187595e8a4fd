"""Candidates that several test files use."""

import pytest
from cutoff_worlds import make_world

from experiments.policies import rank_quantile
from pebr_tf.cutoff import fitting


@pytest.fixture(scope="module")
def quick_fits():
    """Makes every fit take fewer and larger steps while the tests of one file run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "LEARNING_RATE", 2e-2)
        patch.setattr(fitting, "MOST_STEPS", 200)
        patch.setitem(rank_quantile._TREES, "learning_rate", 0.3)
        patch.setitem(rank_quantile._TREES, "max_iter", 30)
        yield


@pytest.fixture(scope="session")
def world():
    """60 queries, 300 items."""
    return make_world()

"""Strata of small sets of queries, worked out by hand, and shares of large ones."""

import numpy as np
import pytest

from pebr_tf.config import Strata
from pebr_tf.metrics import strata_of

SHARES = Strata(head=0.5, torso=0.3, tail=0.2)
HEAD, TORSO, TAIL = range(3)


@pytest.mark.parametrize(
    ("clicks", "strata"),
    [
        ([50, 30, 20], [HEAD, TORSO, TAIL]),
        ([20, 50, 30], [TAIL, HEAD, TORSO]),
        ([90, 5, 5], [HEAD, TAIL, TAIL]),
        ([25, 25, 15, 15, 10, 10], [HEAD, HEAD, TORSO, TORSO, TAIL, TAIL]),
        ([1, 1, 1, 1], [HEAD] * 4),
        ([7], [HEAD]),
        ([7, 0], [HEAD, TAIL]),
        ([0, 0], [TAIL, TAIL]),
        ([], []),
    ],
)
def test_by_hand(clicks, strata):
    assert strata_of(np.array(clicks), SHARES).tolist() == strata


def test_shares_of_many_queries_are_those_asked_for():
    clicks = np.random.default_rng(0).zipf(1.5, 50_000).clip(max=1_000)
    strata = strata_of(clicks, SHARES)
    shares = np.bincount(strata, clicks, 3) / clicks.sum()
    # Queries of equal clicks stay together, and a quarter of the clicks are of queries with one.
    assert shares[HEAD] == pytest.approx(0.5, abs=0.03)
    assert clicks[strata == HEAD].min() > clicks[strata == TORSO].max()
    assert clicks[strata == TORSO].min() > clicks[strata == TAIL].max()


def test_shares_that_binary_cannot_write():
    """.7 + .2 is a little less than .9."""
    clicks = np.array([7, 2, 1])
    assert strata_of(clicks, Strata(head=0.7, torso=0.2, tail=0.1)).tolist() == [HEAD, TORSO, TAIL]

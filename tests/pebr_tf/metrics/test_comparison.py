"""Histograms and groups by hand; curves that ties and short lists cut."""

import numpy as np

from pebr_tf.metrics import RankedLists, Ranks, count_histogram, curve, groups_of
from pebr_tf.metrics.results import CountHistogram, Curve


def test_a_histogram_doubles():
    found = count_histogram(np.array([0, 0, 1, 2, 3, 4, 7, 8]))
    assert found == CountHistogram(edges=[0, 1, 2, 4, 8, 16], queries=[2, 1, 2, 2, 1])
    assert count_histogram(np.array([0])) == CountHistogram([0, 1, 2], [1, 0])


def test_a_stratum_without_queries_is_left_out():
    groups = groups_of(np.array([0, 2, 0]))
    assert {name: mask.tolist() for name, mask in groups.items()} == {
        "overall": [True] * 3,
        "head": [True, False, True],
        "tail": [False, True, False],
    }


def test_a_curve_of_ties_has_the_averages_that_there_are():
    """Two queries of four equal scores: all or nothing."""
    lists = RankedLists(
        np.array([[1, 1, 1, 1], [0, 0, 0, 0]], np.float32),
        Ranks(np.array([0, 1]), np.array([0, 3])),
        np.array([1, 2]),
    )
    found = curve(lists, (2, 3))
    assert found == Curve(average=[2.0, 4.0], precision=[0.125, 0.25], recall=[0.5, 0.75])

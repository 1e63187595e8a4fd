"""The choice between two trainings, by the lists that each would serve."""

import numpy as np
import pytest
from cutoff_worlds import unit

from pebr_tf.config import Training
from pebr_tf.cutoff.tower_trial import correction_helps, served_recalls, trial_training
from pebr_tf.training.retrieval_validation import EmbeddedPairs

ITEMS = 40


def test_recalls_of_top_k_where_it_is_best():
    """Queries with one relevant item each, near it; one has a better item before its own."""
    items = np.eye(ITEMS, dtype=np.float32)
    vectors = unit(items[:6] + 0.1)
    vectors[5] = unit(items[5:6] + 1.5 * items[30:31])
    twice = np.repeat(np.arange(6), 2)
    pairs = EmbeddedPairs(items, vectors, np.full(6, 0.05, "f4"), twice, twice)
    recalls = served_recalls(pairs, "beta", [1, 2])
    np.testing.assert_allclose(recalls, [1, 1, 1, 1, 1, 0.5])


def test_the_level_counts_where_queries_differ_in_breadth():
    """One query has ten relevant items and ten have one each: top k of 2 would miss eight."""
    items = unit(np.concatenate([np.eye(11)[:1].repeat(10, 0), np.eye(11)[1:]]))
    vectors = unit(np.eye(11))
    tau = np.full(11, 0.05, "f4")
    rows = np.concatenate([np.zeros(10, int), np.arange(1, 11)])
    pairs = EmbeddedPairs(items, vectors, tau, rows, np.arange(20))
    recalls = served_recalls(pairs, "beta", [2])
    np.testing.assert_allclose(recalls, 1.0)


@pytest.mark.parametrize(
    ("gains", "helps"),
    [([0.1, 0.1, 0.1], True), ([0.0, 0.0], False), ([0.3, -0.2, 0.0], False), ([-0.1], False)],
)
def test_only_a_clear_gain_turns_the_correction_on(gains, helps):
    base = np.full(len(gains), 0.5)
    assert correction_helps(lambda log_q: base + np.array(gains) * log_q) is helps


def test_a_trial_takes_a_fifth_of_the_steps_at_most_200():
    wanted = {1: 1, 100: 20, 1_000: 200, 20_000: 200}
    assert {n: trial_training(Training(steps=n)).steps for n in wanted} == wanted

"""Recall by hand, and tunings that reach their target with no more work than it takes."""

import dataclasses

import numpy as np
import pytest

from pebr_tf.retrieval import tune as module
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.result import empty, splits_of
from pebr_tf.retrieval.tune import recall


def answers(*rows):
    ids = [item for row in rows for item in row]
    nothing = empty(len(rows), np.zeros(len(rows), np.float32), np.dtype(np.int64))
    return dataclasses.replace(
        nothing,
        row_splits=splits_of([len(row) for row in rows]),
        item_ids=np.array(ids) if ids else nothing.item_ids,
    )


@pytest.mark.parametrize(
    ("found", "truth", "macro", "micro"),
    [
        ([[1, 2]], [[1, 2]], 1, 1),
        ([[2, 1]], [[1, 2]], 1, 1),
        ([[1]], [[1, 2]], 1 / 2, 1 / 2),
        ([[1, 2, 3, 4]], [[1, 2]], 1, 1),
        ([[], [5]], [[1, 2, 3], [5]], 1 / 2, 1 / 4),
        ([[5], [1]], [[1], [5]], 0, 0),
        ([[], [1, 2]], [[], [1, 2, 3, 4]], 3 / 4, 1 / 2),
        ([[7], []], [[], []], 1, 1),
        ([], [], 1, 1),
        ([["a", "b"], ["b"]], [["b", "c"], ["b"]], 3 / 4, 2 / 3),
    ],
)
def test_recall_by_hand(found, truth, macro, micro):
    """The mean over queries, and the share of all items; a query without an item counts as 1."""
    assert recall(answers(*found), answers(*truth)) == pytest.approx((macro, micro))


@pytest.fixture(scope="module")
def tuned_to(sample_of):
    """A function from a target to the tuning for it, and the examples."""
    sample = sample_of("many")
    searcher = sample.searcher
    positions = ExactSearcher(searcher.vectors, np.arange(len(searcher)), checked=True)
    queries = module.stand_in_queries(searcher.vectors, 150, seed=5)
    thresholds = module.stand_in_thresholds(positions, queries, seed=5)
    examples = module.TuningExamples(queries, thresholds, positions.search(queries, thresholds))
    numbered = searcher.with_tuning(searcher.tuning)
    numbered.ids = np.arange(len(searcher))
    tokens = np.load(sample.directory / "tokens.npy")
    error = sample.manifest.quantisation_error

    def of(target):
        tuning = module.tune(numbered, examples, tokens, error, target)
        return numbered.with_tuning(tuning), examples

    return of


def test_the_target_is_reached_with_no_more_leaves_than_needed(tuned_to):
    searched = []
    for target in (0.7, 0.9, 0.99):
        searcher, examples = tuned_to(target)
        found = searcher.search(examples.queries, examples.thresholds)
        assert target <= min(recall(found, examples.answers)) <= 1
        plan = searcher._planner.plan(examples.queries, examples.thresholds, limit=10**9)
        searched.append(plan.leaves.mean())
    assert searched == sorted(searched)
    assert searched[0] < searched[-1]

"""Assertions that the tests of retrieval share."""

import re

import numpy as np
import pytest


def assert_same(result, expected, rtol=0.0):
    """Compares every array of two results, and its dtype; predictions within `rtol`."""
    for name in ("row_splits", "item_ids", "scores", "thresholds", "truncated"):
        left, right = getattr(result, name), getattr(expected, name)
        np.testing.assert_array_equal(left, right, name)
        assert left.dtype == right.dtype, name
    counts = (result.expected_counts, expected.expected_counts)
    np.testing.assert_allclose(*counts, rtol, atol=rtol / 1e3)


def rows_of(result):
    """Lists of pairs (id, score), one per query."""
    rows = (result.row(index) for index in range(len(result)))
    return [list(zip(ids.tolist(), scores.tolist(), strict=True)) for ids, scores in rows]


def raises(kind, message):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")

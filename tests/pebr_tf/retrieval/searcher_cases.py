"""Assertions that the tests of retrieval share."""

import re

import numpy as np
import pytest


def assert_same(result, expected):
    """Compares every array of two results, and its dtype."""
    for name in (
        "row_splits", "item_ids", "scores", "thresholds", "expected_counts", "truncated",
    ):  # fmt: skip
        left, right = getattr(result, name), getattr(expected, name)
        np.testing.assert_array_equal(left, right, name)
        assert left.dtype == right.dtype, name


def raises(kind, message):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")

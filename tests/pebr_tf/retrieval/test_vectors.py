"""Validation of item ids and unit vectors."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from searcher_cases import raises

from pebr_tf.retrieval.vectors import item_ids, reject_rows, unit_vectors


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(0, 20),
    dimension=st.integers(1, 300),
    exponent=st.integers(-30, 30),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_vectors_become_unit_vectors_of_the_same_direction(seed, rows, dimension, exponent, dtype):
    given_vectors = np.random.default_rng(seed).normal(size=(rows, dimension)) * 10.0**exponent
    given_vectors = given_vectors.astype(dtype)
    before = given_vectors.copy()
    vectors = unit_vectors("vectors", given_vectors)
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    assert vectors.shape == (rows, dimension)
    for row, original in zip(vectors.tolist(), given_vectors.tolist(), strict=True):
        length = math.sqrt(math.fsum(value * value for value in original))
        np.testing.assert_allclose(row, np.array(original) / length, rtol=2e-7, atol=1e-12)
    np.testing.assert_array_equal(given_vectors, before)
    # Checked vectors pass a second check unchanged, say when they come back from a file.
    np.testing.assert_array_equal(unit_vectors("vectors", vectors), vectors)


@pytest.mark.parametrize("error", [1.5e-7, -1.5e-7, 9e-7, 1e-5])
def test_a_length_that_would_show_in_a_cosine_is_scaled(error):
    direction = np.random.default_rng(0).normal(size=(50, 16))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    vectors = unit_vectors("vectors", direction * (1 + error)).astype(np.float64)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() <= 1e-7
    # Whatever its neighbours are.
    beside = unit_vectors("vectors", np.concatenate([direction * (1 + error), [[7.0] * 16]]))
    np.testing.assert_array_equal(beside[:-1], vectors)


@pytest.mark.parametrize(
    ("vectors", "received"),
    [
        ([1.0, 0.0], "float64 of shape (2,)"),
        ([[True, False]], "bool of shape (1, 2)"),
        ([["a", "b"]], "<U1 of shape (1, 2)"),
        ([[1j, 0.0]], "complex128 of shape (1, 2)"),
    ],
)
def test_what_is_not_a_matrix_of_numbers_is_rejected(vectors, received):
    shape = "queries must be numbers of shape [rows, dimension]."
    with raises(ValueError, f"{shape} Received: {received}."):
        unit_vectors("queries", vectors)


def test_a_vector_without_a_direction_is_rejected_with_its_row():
    with raises(ValueError, "queries must have dimension 3. Received: 2."):
        unit_vectors("queries", np.eye(2), 3)
    for bad in (np.nan, np.inf, -np.inf):
        vectors = np.eye(4)
        vectors[2, 1] = bad
        with raises(ValueError, "vectors must be finite. Received: row 2."):
            unit_vectors("vectors", vectors)
    vectors = np.ones((9, 2))
    vectors[[0, 1, 3, 4, 5, 6, 8]] = 0
    rows = "rows 0, 1, 3, 4, 5 and 2 more"
    with raises(ValueError, f"vectors must have a length above zero. Received: {rows}."):
        unit_vectors("vectors", vectors)


def test_ids_are_int64_or_text():
    assert item_ids(None, 3).tolist() == [0, 1, 2]
    assert item_ids(None, 3).dtype == np.int64
    for dtype in (np.int8, np.uint16, np.int64, np.uint64):
        ids = item_ids(np.array([5, 3], dtype), 2)
        assert ids.dtype == np.int64
        assert ids.tolist() == [5, 3]
    assert item_ids(["b", "long"], 2).tolist() == ["b", "long"]
    assert item_ids([], 0).dtype == np.int64
    assert item_ids(np.empty(0, "U7"), 0).dtype == np.dtype("U7")


def test_an_integer_that_int64_cannot_hold_is_rejected():
    ids = np.array([2**63 - 1, 2**63], np.uint64)
    with raises(ValueError, f"ids must be at most 2**63 - 1. Received: row 1 ({2**63})."):
        item_ids(ids, 2)
    assert item_ids(ids[:1], 1).tolist() == [2**63 - 1]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], "ids must be 3 values, one per vector. Received: shape (2,)."),
        ([1.0, 2.0, 3.0], "ids must be integers or text. Received: float64."),
        ([b"a", b"b", b"c"], "ids must be integers or text. Received: |S1."),
        ([7, 8, 7], "ids must be different. Received: row 2 (7)."),
        (["a", "a", "a"], "ids must be different. Received: rows 1 ('a'), 2 ('a')."),
    ],
)
def test_other_ids_are_rejected(ids, message):
    with raises(ValueError, message):
        item_ids(ids, 3)


@settings(deadline=None, max_examples=50)
@given(at_fault=st.lists(st.booleans(), max_size=12))
def test_the_first_five_rows_at_fault_are_named(at_fault):
    rows = [position for position, fault in enumerate(at_fault) if fault]
    if not rows:
        reject_rows("values", "be good", np.array(at_fault, bool))
        return
    noun = "row" if len(rows) == 1 else "rows"
    named = ", ".join(f"{row} ('v{row}')" for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    values = np.array([f"v{row}" for row in range(len(at_fault))])
    with raises(ValueError, f"values must be good. Received: {noun} {named}{more}."):
        reject_rows("values", "be good", np.array(at_fault, bool), values)

"""Results of different lengths, against plain loops over lists."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from searcher_cases import rows_of

from pebr_tf.retrieval.result import (
    RangeResult,
    assemble,
    concatenate,
    empty,
    ranked,
    splits_of,
    take_rows,
)

SCORES = [-1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0]


def best_first(row):
    """Pairs (id, score), the larger score first, of equal ones the smaller id."""
    return sorted(row, key=lambda pair: (-pair[1], pair[0]))


def result_of(rows, truncated=None, thresholds=None, id_dtype=np.int64):
    """A result from lists of pairs (id, score), which are ordered first."""
    rows = [best_first(row) for row in rows]
    flat = [pair for row in rows for pair in row]
    return RangeResult(
        row_splits=splits_of(np.array([len(row) for row in rows], np.int64)),
        item_ids=np.array([item for item, _ in flat], None if flat else id_dtype),
        scores=np.array([score for _, score in flat], np.float32),
        thresholds=np.array(thresholds or [0.5] * len(rows), np.float32),
        expected_counts=np.array([len(row) + 0.5 for row in rows], np.float32),
        truncated=np.array(truncated or [False] * len(rows), bool),
    )


@st.composite
def row_lists(draw, count=None):
    """Rows of pairs (id, score); the ids of a row differ, all are integers or all are text."""
    count = draw(st.integers(0, 5)) if count is None else count
    text = draw(st.booleans())
    rows = []
    for _ in range(count):
        numbers = draw(st.lists(st.integers(0, 99), unique=True, max_size=8))
        rows.append([(str(n) if text else n, draw(st.sampled_from(SCORES))) for n in numbers])
    return rows


@settings(deadline=None, max_examples=60)
@given(rows=row_lists(), data=st.data())
def test_keep_drops_what_the_mask_does_not_name(rows, data):
    result = result_of(rows, truncated=[index % 2 == 0 for index in range(len(rows))])
    size = len(result.scores)
    mask = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    flags = iter(mask)
    expected = [[pair for pair in best_first(row) if next(flags)] for row in rows]
    kept = result.keep(np.array(mask, bool))
    assert rows_of(kept) == expected
    assert kept.row_splits.dtype == np.int64
    assert kept.truncated.tolist() == result.truncated.tolist()
    assert kept.thresholds.tolist() == result.thresholds.tolist()


@settings(deadline=None, max_examples=60)
@given(
    rows=row_lists(), limit=st.integers(0, 9), ends=st.tuples(st.integers(0, 5), st.integers(0, 5))
)
def test_head_is_the_start_of_each_row_and_between_a_range_of_rows(rows, limit, ends):
    result = result_of(rows)
    assert rows_of(result.head(limit)) == [best_first(row)[:limit] for row in rows]
    begin, end = sorted(min(each, len(rows)) for each in ends)
    assert rows_of(result.between(begin, end)) == [best_first(row) for row in rows[begin:end]]


@settings(deadline=None, max_examples=60)
@given(rows=row_lists(), seed=st.integers(0, 1000))
def test_ranked_orders_by_row_then_score_then_id(rows, seed):
    triples = [(index, *pair) for index, row in enumerate(rows) for pair in row]
    np.random.default_rng(seed).shuffle(triples)
    item_ids, scores = ranked(
        np.array([row for row, _, _ in triples], np.int64),
        np.array([item for _, item, _ in triples], None if triples else np.int64),
        np.array([score for _, _, score in triples], np.float32),
    )
    expected = [pair for row in rows for pair in best_first(row)]
    assert list(zip(item_ids.tolist(), scores.tolist(), strict=True)) == expected


@settings(deadline=None, max_examples=60)
@given(batches=st.lists(row_lists(), min_size=1, max_size=4))
def test_concatenate_puts_batches_one_after_another(batches):
    # Integers only: one index has ids of one kind.
    batches = [[[(int(item), score) for item, score in row] for row in rows] for rows in batches]
    flags = [[index % 2 == 1 for index in range(len(rows))] for rows in batches]
    thresholds = [[index / 8 for index in range(len(rows))] for rows in batches]
    results = [
        result_of(rows, flag, threshold)
        for rows, flag, threshold in zip(batches, flags, thresholds, strict=True)
    ]
    whole = concatenate(results)
    assert rows_of(whole) == [best_first(row) for rows in batches for row in rows]
    assert whole.truncated.tolist() == [value for flag in flags for value in flag]
    assert whole.thresholds.tolist() == [value for part in thresholds for value in part]
    assert whole.expected_counts.tolist() == [len(row) + 0.5 for rows in batches for row in rows]


@settings(deadline=None, max_examples=60)
@given(rows=row_lists(), groups=st.integers(1, 3), seed=st.integers(0, 1000))
def test_assemble_puts_each_query_back_into_its_place(rows, groups, seed):
    generator = np.random.default_rng(seed)
    places = generator.permutation(len(rows))
    group_of = generator.integers(groups, size=len(rows))
    id_dtype = next((np.array(pair[0]).dtype for row in rows for pair in row), np.int64)
    parts = []
    for group in range(groups):
        chosen = places[group_of == group]
        part = result_of(
            [rows[place] for place in chosen],
            [bool(place % 2) for place in chosen],
            thresholds=[place / 8 for place in chosen],
            id_dtype=id_dtype,
        )
        parts.append((chosen, part))
    whole = assemble(parts)
    assert rows_of(whole) == [best_first(row) for row in rows]
    assert whole.truncated.tolist() == [bool(place % 2) for place in range(len(rows))]
    assert whole.thresholds.tolist() == [place / 8 for place in range(len(rows))]
    assert whole.expected_counts.tolist() == [len(row) + 0.5 for row in rows]


@settings(deadline=None, max_examples=60)
@given(rows=row_lists(), data=st.data())
def test_take_rows_is_the_named_rows_in_their_order(rows, data):
    places = st.lists(st.integers(0, len(rows) - 1), max_size=8) if rows else st.just([])
    chosen = data.draw(places)
    flags = [index % 2 == 1 for index in range(len(rows))]
    thresholds = [index / 8 for index in range(len(rows))]
    taken = take_rows(result_of(rows, flags, thresholds), np.array(chosen, np.int64))
    assert rows_of(taken) == [best_first(rows[index]) for index in chosen]
    assert taken.truncated.tolist() == [flags[index] for index in chosen]
    assert taken.thresholds.tolist() == [thresholds[index] for index in chosen]
    assert taken.expected_counts.tolist() == [len(rows[index]) + 0.5 for index in chosen]


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("dtype", ["int64", "<U4"])
def test_an_empty_result_has_empty_rows(count, dtype):
    thresholds = np.linspace(-1, 1, count).astype(np.float32)
    result = empty(count, thresholds, np.dtype(dtype))
    assert rows_of(result) == [[]] * count
    assert result.item_ids.dtype == dtype
    assert result.scores.dtype == np.float32
    assert result.thresholds is thresholds
    assert result.expected_counts.tolist() == [0] * count
    assert result.truncated.tolist() == [False] * count

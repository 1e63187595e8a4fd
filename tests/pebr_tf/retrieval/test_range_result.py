"""Results of different lengths, against plain loops over lists."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from searcher_cases import rows_of

from pebr_tf.retrieval.result import RangeResult, assemble, concatenate, splits_of, take_rows

SCORES = [-1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0]

many = settings(deadline=None, max_examples=60)


def best_first(row):
    """Pairs (id, score), the larger score first, of equal ones the smaller id."""
    return sorted(row, key=lambda pair: (-pair[1], pair[0]))


def columns(rows, places=None):
    """Thresholds, expected counts and truncated; `places` tell the queries of the rows apart."""
    places = range(len(rows)) if places is None else places
    counts = [len(row) + 0.5 for row in rows]
    return [place / 8 for place in places], counts, [place % 2 == 1 for place in places]


def result_of(rows, places=None, id_dtype=np.int64):
    """A result from lists of pairs (id, score), which are ordered first."""
    flat = [pair for row in rows for pair in best_first(row)]
    thresholds, expected_counts, truncated = columns(rows, places)
    return RangeResult(
        row_splits=splits_of(np.array([len(row) for row in rows], np.int64)),
        item_ids=np.array([item for item, _ in flat], None if flat else id_dtype),
        scores=np.array([score for _, score in flat], np.float32),
        thresholds=np.array(thresholds, np.float32),
        expected_counts=np.array(expected_counts, np.float32),
        truncated=np.array(truncated, bool),
    )


def columns_of(result):
    arrays = (result.thresholds, result.expected_counts, result.truncated)
    return [array.tolist() for array in arrays]


def assert_is(result, rows, places=None):
    assert rows_of(result) == [best_first(row) for row in rows]
    assert columns_of(result) == list(columns(rows, places))


@st.composite
def row_lists(draw):
    """Rows of pairs (id, score); the ids of a row differ, all are integers or all are text."""
    text = draw(st.booleans())
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        numbers = draw(st.lists(st.integers(0, 99), unique=True, max_size=8))
        rows.append([(str(n) if text else n, draw(st.sampled_from(SCORES))) for n in numbers])
    return rows


@many
@given(rows=row_lists(), data=st.data())
def test_keep_drops_what_the_mask_does_not_name(rows, data):
    result = result_of(rows)
    size = len(result.scores)
    mask = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    flags = iter(mask)
    kept = result.keep(np.array(mask, bool))
    assert rows_of(kept) == [[pair for pair in best_first(row) if next(flags)] for row in rows]
    assert kept.row_splits.dtype == np.int64
    assert columns_of(kept) == columns_of(result)


@many
@given(
    rows=row_lists(), limit=st.integers(0, 9), ends=st.tuples(st.integers(0, 5), st.integers(0, 5))
)
def test_head_is_the_start_of_each_row_and_between_a_range_of_rows(rows, limit, ends):
    result = result_of(rows)
    assert rows_of(result.head(limit)) == [best_first(row)[:limit] for row in rows]
    limited = result.limited(limit)
    assert rows_of(limited) == rows_of(result.head(limit))
    cut = [len(row) > limit for row in rows]
    np.testing.assert_array_equal(limited.truncated, result.truncated | np.array(cut, bool))
    begin, end = sorted(min(each, len(rows)) for each in ends)
    assert_is(result.between(begin, end), rows[begin:end], range(begin, end))


@many
@given(rows=row_lists(), groups=st.integers(1, 3), seed=st.integers(0, 1000))
def test_assemble_puts_each_query_back_into_its_place(rows, groups, seed):
    generator = np.random.default_rng(seed)
    places = generator.permutation(len(rows))
    group_of = generator.integers(groups, size=len(rows))
    id_dtype = next((np.array(pair[0]).dtype for row in rows for pair in row), np.int64)
    chosen = [places[group_of == group].tolist() for group in range(groups)]
    parts = [result_of([rows[place] for place in each], each, id_dtype) for each in chosen]
    in_turn = [place for each in chosen for place in each]
    assert_is(concatenate(parts), [rows[place] for place in in_turn], in_turn)
    pairs = [(np.array(each, np.int64), part) for each, part in zip(chosen, parts, strict=True)]
    assert_is(assemble(pairs), rows)


@many
@given(rows=row_lists(), data=st.data())
def test_take_rows_is_the_named_rows_in_their_order(rows, data):
    places = st.lists(st.integers(0, len(rows) - 1), max_size=8) if rows else st.just([])
    chosen = data.draw(places)
    taken = take_rows(result_of(rows), np.array(chosen, np.int64))
    assert_is(taken, [rows[index] for index in chosen], chosen)

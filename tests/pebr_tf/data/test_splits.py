"""Splits: shares, disjoint queries, and the same answer in any batch and order."""

import numpy as np
import pyarrow as pa
import pytest

from pebr_tf.config import Split
from pebr_tf.data import splits
from pebr_tf.data.splits import CALIBRATE, TEST, TRAIN, TimeCounts, assign, held_out_from

GENERATOR = np.random.default_rng(0)
COUNT = 40_000
QUERIES = pa.array([f"query {n}" for n in GENERATOR.integers(4_000, size=COUNT)])
ITEMS = pa.array([f"item {n}" for n in GENERATOR.integers(2_000, size=COUNT)])
TIMES = GENERATOR.integers(10**6, size=COUNT)


def assigned(split, chosen=slice(None)):
    order = pa.array(np.arange(COUNT)[chosen])
    begins = held_out_from(split, TIMES) if split.by == "time" else None
    return assign(split, QUERIES.take(order), ITEMS.take(order), TIMES[chosen], begins)


@pytest.mark.parametrize("by", ["pair", "time", "query"])
@pytest.mark.parametrize(("calibrate", "test"), [(0.1, 0.1), (0.05, 0.2), (0.3, 0.6)])
def test_shares_are_those_of_the_config_and_queries_are_disjoint(by, calibrate, test):
    places = assigned(Split(by=by, calibrate=calibrate, test=test))
    shares = np.bincount(places, minlength=3) / COUNT
    np.testing.assert_allclose(shares, [1 - calibrate - test, calibrate, test], atol=0.02)
    queries = np.array(QUERIES.to_pylist())
    assert not set(queries[places == CALIBRATE]) & set(queries[places == TEST])


@pytest.mark.parametrize("by", ["pair", "time", "query"])
def test_a_click_keeps_its_place_in_any_batch(by):
    split = Split(by=by)
    everything = assigned(split)
    shuffled = np.random.default_rng(1).permutation(COUNT)
    np.testing.assert_array_equal(assigned(split, shuffled[:500]), everything[shuffled[:500]])
    assert assigned(split, [7])[0] == everything[7]


@pytest.mark.parametrize(("by", "columns"), [("pair", (QUERIES, ITEMS)), ("query", (QUERIES,))])
def test_what_is_held_out_together_is_never_in_two_places(by, columns):
    seen = {}
    for *key, place in zip(*(c.to_pylist() for c in columns), assigned(Split(by=by)), strict=True):
        assert seen.setdefault(tuple(key), place) == place


def test_by_time_everything_held_out_is_later_than_what_trains():
    places = assigned(Split(by="time"))
    assert TIMES[places == TRAIN].max() < TIMES[places != TRAIN].min()


def test_clicks_of_one_second_stay_together():
    split = Split(by="time", calibrate=0.2, test=0.2)
    times = np.array([1, 2, 5, 5, 5, 5, 9])
    begins = held_out_from(split, times)
    assert begins == 6
    one = pa.array(["a"] * 7)
    assert (assign(split, one, one, times, begins) != TRAIN).tolist() == [False] * 6 + [True]


@pytest.mark.parametrize("by", ["pair", "query"])
def test_queries_that_the_towers_read_alike_stay_together(by):
    split = Split(by=by, calibrate=0.3, test=0.3)
    other = pa.array([text.as_py().replace("query", "ＱＵＥＲＹ") for text in QUERIES[:2_000]])
    alike = [assign(split, texts, ITEMS[:2_000], TIMES) for texts in (QUERIES[:2_000], other)]
    np.testing.assert_array_equal(*alike)


def test_another_seed_is_another_split():
    same = np.mean(assigned(Split()) == assigned(Split(seed=1)))
    # Two independent splits of .8, .1, .1.
    assert same == pytest.approx(0.66, abs=0.02)


def test_known_places():
    """A change of the hash would move clicks of old data between splits."""
    text = pa.array(["a", "b", "c", "手机", "d", "e", "f", "g"])
    places = assign(Split(calibrate=0.3, test=0.3), text, text, np.zeros(8))
    assert places.tolist() == [1, 0, 2, 0, 0, 0, 2, 0]


def test_a_split_by_time_requires_its_begin():
    one = pa.array(["a"])
    with pytest.raises(ValueError, match="requires the second that it begins at"):
        assign(Split(by="time"), one, one, np.zeros(1))


def counted(parts):
    counts = TimeCounts.of(np.empty(0, np.int64))
    for part in parts:
        counts = counts.and_also(TimeCounts.of(part))
    return counts


@pytest.mark.parametrize("size", [1, 2, 7, 1_000, COUNT])
@pytest.mark.parametrize(("calibrate", "test"), [(0.1, 0.1), (0.25, 0.5), (0.001, 0.002)])
def test_counts_of_times_cut_where_all_times_do(size, calibrate, test):
    split = Split(by="time", calibrate=calibrate, test=test)
    times = TIMES[:size] - 500_000
    assert counted(np.array_split(times, 3)).held_out_from(split) == held_out_from(split, times)


def test_longer_stretches_do_not_depend_on_the_order_of_merging(monkeypatch):
    monkeypatch.setattr(splits, "MAX_STRETCHES", 100)
    split = Split(by="time")
    counts = counted(np.array_split(TIMES, 9))
    backwards = counted(np.array_split(TIMES[::-1], 2))
    assert len(counts.stretch) <= 100
    assert counts.length == backwards.length == 16_384
    np.testing.assert_array_equal(counts.stretch, backwards.stretch)
    np.testing.assert_array_equal(counts.clicks, backwards.clicks)
    assert counts.clicks.sum() == COUNT
    exact = held_out_from(split, TIMES)
    assert exact <= counts.held_out_from(split) < exact + counts.length

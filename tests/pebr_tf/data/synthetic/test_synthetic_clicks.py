"""Clicks follow the world: counts, relevance, noise, popularity and time."""

import dataclasses

import numpy as np
import pytest

from pebr_tf.data.synthetic import SyntheticSpec, click_chunks, clicks
from pebr_tf.data.synthetic.clicks import DAYS, END_TIME, START_TIME, ClickSampler

CLICKS = 200_000


@pytest.fixture(scope="module")
def columns(default_world):
    return ClickSampler(default_world, SyntheticSpec(clicks=CLICKS, noise=0.2)).chunk(0)


def is_outside(world, columns):
    owner = np.repeat(np.arange(len(world.queries)), world.queries.relevant_counts)
    relevant = owner * len(world.catalogue) + world.queries.item_indices
    return ~np.isin(columns.query.astype(np.int64) * len(world.catalogue) + columns.item, relevant)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(clicks, "CHUNK_CLICKS", 1_000)


@pytest.mark.parametrize("number", [1, 1_000, 1_001, 2_345])
def test_the_number_of_clicks_is_exact(small_world, small_spec, small_chunks, number):
    spec = dataclasses.replace(small_spec, clicks=number)
    tables = list(click_chunks(small_world, spec))
    assert [len(table) for table in tables[:-1]] == [1_000] * ((number - 1) // 1_000)
    assert sum(len(table) for table in tables) == number
    assert len(ClickSampler(small_world, spec)) == len(tables)


def test_a_chunk_does_not_depend_on_the_number_of_chunks(small_world, small_spec, small_chunks):
    short = list(click_chunks(small_world, dataclasses.replace(small_spec, clicks=2_500)))
    long = list(click_chunks(small_world, dataclasses.replace(small_spec, clicks=6_000)))
    equal = [left.equals(right) for left, right in zip(short, long, strict=False)]
    assert equal == [True, True, False]
    assert not long[0].equals(long[1])
    # They come one at a time.
    chunks = click_chunks(small_world, dataclasses.replace(small_spec, clicks=10_000_000_000))
    assert [len(next(chunks)) for _ in range(3)] == [1_000] * 3


def test_noise_is_binomial(default_world, columns):
    share = default_world.queries.relevant_counts[columns.query] / len(default_world.catalogue)
    chance = 0.2 * (1.0 - share)
    outside = is_outside(default_world, columns)
    assert not outside[~columns.is_noise].any()
    deviation = np.sqrt((chance * (1.0 - chance)).sum())
    assert abs(outside.sum() - chance.sum()) < 5 * deviation
    assert abs(columns.is_noise.sum() - 0.2 * CLICKS) < 5 * np.sqrt(0.16 * CLICKS)


def test_noise_falls_on_all_items_alike(default_world, columns):
    noise = columns.item[columns.is_noise]
    halves = np.bincount(noise >= len(default_world.catalogue) // 2)
    assert abs(halves[0] - halves[1]) < 5 * np.sqrt(len(noise))
    popular = np.argsort(-default_world.catalogue.popularity)[:2_000]
    expected = len(noise) / 10
    assert abs(np.isin(noise, popular).sum() - expected) < 5 * np.sqrt(expected)


def test_queries_are_drawn_by_popularity(default_world, columns):
    asked = np.bincount(columns.query, minlength=len(default_world.queries))
    expected = default_world.queries.popularity * CLICKS
    assert np.abs((asked - expected) / np.sqrt(expected)).max() < 6
    assert len(np.unique(columns.query)) > 0.95 * len(default_world.queries)


def test_items_are_drawn_by_popularity_inside_the_relevant_set(default_world, columns):
    for query in np.argsort(-default_world.queries.popularity)[:20]:
        relevant = default_world.queries.relevant(query)
        mine = (columns.query == query) & ~columns.is_noise
        share = default_world.catalogue.popularity[relevant]
        expected = share / share.sum() * mine.sum()
        clicked = np.bincount(columns.item[mine], minlength=len(default_world.catalogue))[relevant]
        assert clicked.sum() == mine.sum()
        often = expected > 5
        assert np.abs((clicked - expected)[often] / np.sqrt(expected[often])).max() < 6


def test_clicks_span_sixty_days_to_the_second(columns):
    assert END_TIME - START_TIME == DAYS * 86_400 == 60 * 24 * 3_600
    assert END_TIME % 86_400 == 0
    assert columns.timestamp.min() >= START_TIME
    assert columns.timestamp.max() < END_TIME
    days = np.bincount((columns.timestamp - START_TIME) // 86_400)
    assert len(days) == 60
    assert np.abs(days - CLICKS / 60).max() < 5 * np.sqrt(CLICKS / 60)
    assert (np.diff(columns.timestamp) >= 0).all()

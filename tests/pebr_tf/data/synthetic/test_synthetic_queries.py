"""Relevance against two independent oracles; breadth, popularity and number of the queries."""

import re

import numpy as np
import pytest
import scipy.stats

from pebr_tf.data.synthetic import SyntheticSpec, make_world
from pebr_tf.data.synthetic.levels import PAIRS_PER_ITEM, QUERY_KINDS
from pebr_tf.data.synthetic.text import catalogue_table
from pebr_tf.data.synthetic.writer import queries_table


def relevance(world):
    return [world.queries.relevant(query).tolist() for query in range(len(world.queries))]


def relevance_by_columns(world):
    """Compares every query's constraints with every item's columns."""
    items = catalogue_table(world.catalogue, 0, len(world.catalogue)).to_pylist()
    attributes = [set(item["attributes"].split(";")) for item in items]
    found = []
    for query in queries_table(world).to_pylist():
        wanted = {name: query[name] for name in ("department", "category", "brand", "model")}
        values = set(filter(None, query["attributes"].split(";")))
        found.append(
            [
                number
                for number, item in enumerate(items)
                if all(not text or item[name] == text for name, text in wanted.items())
                and values <= attributes[number]
            ]
        )
    return found


def relevance_by_text(world):
    """Reads the query's text alone: an item fits if its own phrases make up all of the words."""
    phrases = []
    for item in catalogue_table(world.catalogue, 0, len(world.catalogue)).to_pylist():
        stem, suffix = re.fullmatch(r"([a-z]+\d+)([a-z]*)", item["model"]).groups()
        values = [attribute.split("=")[1] for attribute in item["attributes"].split(";")]
        names = [item["department"], item["category"], item["brand"], item["model"]]
        phrases.append([*names, f"{stem} {suffix}".strip(), *values])
    found = []
    for text in world.queries.texts.to_pylist():
        words = set(text.split())
        matches = []
        for number, own in enumerate(phrases):
            said = [phrase for phrase in own if f" {phrase} " in f" {text} "]
            if {word for phrase in said for word in phrase.split()} == words:
                matches.append(number)
        found.append(matches)
    return found


def test_relevance_is_what_the_columns_and_the_texts_say(small_world):
    found = relevance(small_world)
    assert found == relevance_by_columns(small_world)
    assert found == relevance_by_text(small_world)


def test_relevance_when_every_possible_query_is_asked(rejection):
    """One more is rejected in a sentence that names the possible number."""
    sentence = rejection(make_world, SyntheticSpec(items=100, queries=10_000_000, seed=8))
    possible = int(re.search(r"at most (\d+)", sentence).group(1))
    assert sentence == (
        f"--queries must be at most {possible}, which is all that this catalogue of 100 items can "
        "answer. Received: 10000000."
    )
    one_more = SyntheticSpec(items=100, queries=possible + 1, seed=8)
    assert f"at most {possible}," in rejection(make_world, one_more)
    world = make_world(SyntheticSpec(items=100, queries=possible, seed=8))
    assert relevance(world) == relevance_by_columns(world)
    assert set(world.queries.constraints.kind) == set(range(len(QUERY_KINDS)))
    assert len(world.queries.item_indices) <= PAIRS_PER_ITEM * 100


def test_texts_are_unique_in_a_large_world():
    world = make_world(SyntheticSpec(items=10_000, queries=30_000))
    texts = world.queries.texts.to_pylist()
    assert len(texts) == len(set(texts)) == 30_000
    assert all(re.fullmatch(r"[a-z0-9.]+( [a-z0-9.]+)*", text) for text in texts)


def test_breadth_is_heavy_tailed(default_world):
    counts = default_world.queries.relevant_counts
    assert 14 <= np.median(counts) <= 26
    assert 3_000 <= counts.max() <= 8_000
    assert (counts <= 4).mean() > 0.08
    assert (counts >= 400).mean() > 0.008


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_popular_queries_are_broad(seed):
    world = make_world(SyntheticSpec(items=5_000, queries=2_000, seed=seed))
    oracle = scipy.stats.spearmanr(
        world.queries.popularity, world.queries.relevant_counts
    ).statistic
    assert world.breadth_correlation == pytest.approx(oracle, abs=1e-12)
    assert 0.5 < world.breadth_correlation < 0.9


def test_popularity_is_zipf_like(default_world):
    popularity = np.sort(default_world.queries.popularity)[::-1]
    assert popularity.sum() == pytest.approx(1.0)
    ranks = np.arange(1, len(popularity) + 1)
    slope = np.polyfit(np.log(ranks[100:]), np.log(popularity[100:]), 1)[0]
    assert -1.1 < slope < -0.9
    assert 0.005 < popularity[0] < 0.05

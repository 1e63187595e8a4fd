"""Recall of validation pairs, against plain NumPy, for a model whose features are its vectors."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.training import retrieval_validation
from pebr_tf.training.retrieval_validation import RetrievalValidation
from pebr_tf.training.text_table import TextTable

ITEMS, PAIRS = 500, 90
MODEL = SimpleNamespace(
    encode_item=lambda batch: batch["vector"],
    encode_query=lambda batch: SimpleNamespace(vectors=batch["query_vector"]),
)


def table_of(vectors):
    texts = [f"i{n}" for n in range(len(vectors))]
    # Hashes in another order than the items.
    hashes = 7919 * np.arange(len(vectors)) % 10_007
    return TextTable([(tf.constant(texts), {"vector": vectors, "item_hash": hashes})]), hashes


def recall_of(items, queries, relevant, k, sizes=(PAIRS,)):
    table, hashes = table_of(tf.constant(items, tf.float32))
    splits = np.cumsum(sizes)[:-1]
    parts = zip(np.split(queries, splits), np.split(relevant, splits), strict=True)
    pairs = [
        {
            "query_vector": tf.constant(vectors, tf.float32),
            "query_id": tf.constant(rows % 40),
            "item_hash": tf.constant(hashes[rows]),
        }
        for vectors, rows in parts
    ]
    strategy = tf.distribute.get_strategy()
    return RetrievalValidation(MODEL, pairs, table, k, strategy).recall()


@pytest.fixture(scope="module")
def world():
    generator = np.random.default_rng(0)
    items, noise = (generator.normal(size=(n, 4)).astype(np.float32) for n in (ITEMS, PAIRS))
    relevant = generator.integers(ITEMS, size=PAIRS)
    return items, items[relevant] + noise, relevant


@pytest.mark.parametrize("k", [1, 20, ITEMS])
def test_recall_is_that_of_a_sort(world, k, monkeypatch):
    monkeypatch.setattr(retrieval_validation, "ITEM_BATCH", 64)
    items, queries, relevant = world
    first = np.argsort(-queries @ items.T, axis=1)[:, :k]
    hits = (first == relevant[:, np.newaxis]).any(axis=1)
    ids = relevant % 40
    of_queries = [hits[ids == each].mean() for each in set(ids.tolist())]
    found = recall_of(items, queries, relevant, k, (50, 40))
    assert found.value == pytest.approx(np.mean(of_queries))
    # At most the error of means of one pair each.
    assert found.error >= np.std(of_queries) / len(of_queries) ** 0.5 - 1e-9


def test_a_sample_of_the_items_has_the_relevant_ones_and_is_always_the_same(world, monkeypatch):
    monkeypatch.setattr(retrieval_validation, "ITEM_LIMIT", 100)
    items, queries, relevant = world
    whole = recall_of(items, queries, relevant, ITEMS)
    sampled = [recall_of(items, queries, relevant, 20).value for _ in range(2)]
    monkeypatch.undo()
    assert whole == (1, 0)
    assert recall_of(items, queries, relevant, 20).value < sampled[0] == sampled[1] < 1


def test_equal_vectors_and_numbers_that_are_none_retrieve_nothing(world):
    _, queries, relevant = world
    for value in (1.0, np.nan):
        assert recall_of(np.full((ITEMS, 4), value), queries, relevant, ITEMS - 1) == (0, 0)

"""The transformer over the tokens of a text."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.config import Features, Towers
from pebr_tf.models.fields import item_fields
from pebr_tf.models.tower import TokenTables, Tower
from pebr_tf.models.transformer import TextTransformer

TOWERS = Towers(
    kind="transformer", dimension=6, token_dimension=8, transformer_heads=2, hidden_layers=(8,)
)


@pytest.fixture(scope="module")
def table():
    return tf.Variable(np.random.default_rng(0).normal(size=(12, 8)), dtype=tf.float32)


@pytest.fixture(scope="module")
def transformer(table):
    tf.keras.utils.set_random_seed(1)
    layer = TextTransformer(TOWERS, 6)
    layer(table, tf.ragged.constant([[0]], dtype=tf.int64))
    return layer


def texts(*rows):
    return tf.ragged.constant(rows, dtype=tf.int64)


def test_a_longer_text_beside_it_does_not_change_a_texts_vector(transformer, table):
    alone = transformer(table, texts([3, 4]))
    beside = transformer(table, texts([1, 2, 5, 6, 7], [3, 4], [0]))
    assert alone.shape == (1, 8)
    np.testing.assert_allclose(beside[1], alone[0], rtol=1e-4, atol=1e-6)


def test_the_order_of_tokens_counts(transformer, table):
    one, other = transformer(table, texts([3, 4], [4, 3])).numpy()
    assert np.abs(one - other).max() > 1e-4


def test_tokens_beyond_the_limit_are_left_out(transformer, table):
    long, cut = transformer(table, texts([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6])).numpy()
    np.testing.assert_allclose(long, cut, rtol=1e-4, atol=1e-6)


def test_the_gradient_reaches_the_tokens_of_the_batch_alone(transformer, table):
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(transformer(table, texts([3, 4, 9], [5]))[:, 0])
    gradient = tf.convert_to_tensor(tape.gradient(total, table)).numpy()
    # Place 0 fills up the shorter text, and must not learn from that.
    moved = np.abs(gradient).max(axis=1) > 1e-6
    np.testing.assert_array_equal(np.flatnonzero(moved), [3, 4, 5, 9])


def test_an_empty_batch_and_an_empty_text_are_finite(transformer, table):
    assert transformer(table, texts([1])[:0]).shape == (0, 8)
    assert np.isfinite(transformer(table, texts([], [1]))).all()


def test_only_text_goes_through_it():
    features = Features(item_categories=("brand",), item_numbers=("price",))
    tables = TokenTables({"tokens": 12, "values_brand": 3}, 8)
    tower = Tower(item_fields(features), tables, TOWERS, 6)
    batch = {
        "item_title_tokens": texts([3, 4], [5]),
        "item_brand_value": texts([2], [0]),
        "item_price_number": tf.constant([0.5, -1.0]),
    }
    pooled = tower.pooled(batch).numpy()
    assert pooled.shape == (2, 8 + 8 + 1)
    np.testing.assert_allclose(
        pooled[:, :8],
        tower._transformer(tables.tables["tokens"], batch["item_title_tokens"]),
        rtol=1e-5,
        atol=1e-6,
    )
    np.testing.assert_array_equal(pooled[:, 8:16], tables.tables["values_brand"].numpy()[[2, 0]])
    np.testing.assert_array_equal(pooled[:, 16], [0.5, -1.0])
    np.testing.assert_allclose(np.linalg.norm(tower(pooled), axis=1), 1.0, atol=1e-6)

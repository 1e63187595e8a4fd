"""Fields of the towers; tables and towers against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.config import Features, Towers
from pebr_tf.models.fields import Field, item_fields, query_fields, table_sizes
from pebr_tf.models.tower import TokenTables, Tower

FEATURES = Features(item_categories=("brand",), item_numbers=("price",))
SMALL = Towers(dimension=6, token_dimension=4, hidden_layers=(8, 5))


def batch():
    return {
        "item_title_tokens": tf.ragged.constant([[0, 2, 2], [1], [4, 3]], dtype=tf.int64),
        "item_brand_value": tf.ragged.constant([[1], [0], [1]], dtype=tf.int64),
        "item_price_number": tf.constant([0.5, -2.0, 0.0]),
    }


@pytest.fixture
def tables():
    tf.keras.utils.set_random_seed(1)
    return TokenTables({"tokens": 5, "values_brand": 2}, 4)


def numpy_pooled(tables, features):
    tokens, brands = (tables.tables[name].numpy() for name in ("tokens", "values_brand"))
    rows = []
    for title, brand, price in zip(
        features["item_title_tokens"].to_list(),
        features["item_brand_value"].to_list(),
        features["item_price_number"].numpy(),
        strict=True,
    ):
        text = tokens[title].sum(axis=0) / np.sqrt(len(title))
        rows.append(np.concatenate([text, brands[brand[0]], [price]]))
    return np.array(rows)


@pytest.mark.parametrize("widths", [(8, 5), ()])
def test_the_tower_is_the_perceptron_of_numpy_with_unit_norm(tables, widths):
    tower = Tower(item_fields(FEATURES), tables, Towers(dimension=6, hidden_layers=widths))
    vectors = tower(tower.pooled(batch())).numpy()
    values = numpy_pooled(tables, batch())
    *hidden, last = [
        (layer.kernel.numpy(), layer.bias.numpy()) for layer in (*tower._hidden, tower._last)
    ]
    for kernel, bias in hidden:
        values = np.maximum(values @ kernel + bias, 0)
    values = values @ last[0] + last[1]
    expected = values / np.linalg.norm(values, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_the_gradient_of_a_table_is_that_of_its_rows_in_the_batch(tables):
    tower = Tower(item_fields(FEATURES), tables, SMALL)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(tower.pooled(batch())[:, :4] ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(total, tables.tables["tokens"])).numpy()
    expected = np.zeros([5, 4])
    pooled = numpy_pooled(tables, batch())[:, :4]
    for row, title in zip(pooled, batch()["item_title_tokens"].to_list(), strict=True):
        for token in title:
            expected[token] += 2 * row / np.sqrt(len(title))
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


def test_dropout_only_in_training(tables):
    tower = Tower(
        item_fields(FEATURES), tables, Towers(dimension=6, hidden_layers=(64,), dropout=0.5)
    )
    pooled = tower.pooled(batch())
    still = [tower(pooled).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*still)
    assert not np.allclose(tower(pooled, training=True), tower(pooled, training=True))


def test_tables_stay_float32_and_vectors_too_under_mixed_precision():
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        tables = TokenTables({"tokens": 5, "values_brand": 2}, 4)
        tower = Tower(item_fields(FEATURES), tables, SMALL)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    vectors = tower(tower.pooled(batch()))
    assert tables.tables["tokens"].dtype == tf.float32
    assert vectors.dtype == tf.float32
    assert tower._hidden[0].compute_dtype == "bfloat16"
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_the_fields_of_queries_and_of_items_in_order():
    """A query of text shares its vocabulary with the items' text; an id is looked up whole."""
    assert query_fields(Features()) == (Field("query_tokens", "query", "text", "tokens"),)
    assert query_fields(Features(query_kind="id")) == (
        Field("query_tokens", "query", "whole", "queries"),
    )
    features = Features(
        item_text=("title",), item_categories=("brand",), item_numbers=("price",), item_id=True
    )
    assert item_fields(features) == (
        Field("item_title_tokens", "title", "text", "tokens"),
        Field("item_brand_value", "brand", "whole", "values_brand"),
        Field("item_price_number", "price", "number", ""),
        Field("item_id_value", "item_id", "whole", "items"),
    )


def test_tables_have_the_words_and_the_buckets_and_numbers_have_none():
    fields = item_fields(Features(item_categories=("brand",), item_numbers=("price",)))
    sizes = table_sizes(fields, {"tokens": 10, "values_brand": 3, "unused": 99}, 5)
    assert sizes == {"tokens": 15, "values_brand": 8}

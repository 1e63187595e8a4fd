"""Features that are made once per text, in two parts, and looked up."""

import pytest
import tensorflow as tf

from pebr_tf.training.text_table import TextTable

PARTS = [
    (["a", "b"], [[1, 2], [3]], [2**62, 5]),
    ([], [], []),
    (["c"], [[2**31 - 1]], [7]),
]


@pytest.fixture(scope="module")
def table():
    parts = []
    for texts, tokens, hashes in PARTS:
        ids = tf.ragged.constant(tokens, tf.int64, ragged_rank=1, row_splits_dtype=tf.int64)
        features = {"tokens": ids, "hash": tf.constant(hashes, tf.int64)}
        parts.append((tf.constant(texts, tf.string), features))
    return TextTable(parts)


def test_features_by_text_in_the_order_of_the_texts(table):
    assert table.texts.numpy().tolist() == [b"a", b"b", b"c"]
    dataset = tf.data.Dataset.from_tensors(tf.constant(["c", "a", "c"])).map(table)
    (found,) = dataset
    assert found["tokens"].to_list() == [[2**31 - 1], [1, 2], [2**31 - 1]]
    assert found["hash"].numpy().tolist() == [7, 2**62, 7]


def test_ids_take_half_the_memory_and_hashes_stay_whole(table):
    found = table.at(tf.constant([0]))
    assert (found["tokens"].dtype, found["hash"].dtype) == (tf.int32, tf.int64)


def test_a_text_that_the_table_lacks_is_an_error(table):
    with pytest.raises(tf.errors.InvalidArgumentError, match="-1"):
        table(tf.constant(["a", "d"]))

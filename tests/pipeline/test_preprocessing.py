"""Preprocessing of a few rows, compared with counts made by hand."""

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from preprocessing_runs import analysed, texts_of, transformed

from pebr_tf.config import Features
from pebr_tf.models.text import tokens_of
from pipeline import counting

pytestmark = pytest.mark.slow

ROWS = [
    # query, item, clicks, title, brand, price
    ("iPhone 16", "a", 3, "Apple iPhone 16", "apple", 3.0),
    ("ＩＰＨＯＮＥ 16", "b", 1, "华为手机", "", 1.0),
    ("gift", "b", 2, "华为手机", "hua\nwei", 1.0),
    ("rare", "c", 1, "tea pot tea", "apple", 5.0),
    ("gift", "c", 1, "tea pot tea", "apple", 5.0),
]
COLUMNS = ("query", "item_id", "clicks", "title", "brand", "price")
SETTINGS = {
    "item_categories": ("brand",),
    "item_numbers": ("price",),
    "min_token_count": 2,
    "oov_buckets": 5,
}


def as_rows(rows):
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The output of Transform, and the columns that its graph makes of the rows."""
    texts = texts_of(as_rows(ROWS), COLUMNS[3:])
    output = analysed(texts, tmp_path_factory.mktemp("transform"), **SETTINGS)
    return output, transformed(output, as_rows(ROWS))


def token_counts():
    """A token counts once per click of the query or item that has it."""
    texts = [text for row in ROWS for text in (row[0], row[3]) * row[2]]
    rows = tokens_of(tf.constant(texts), Features()).to_list()
    return Counter(token for row in rows for token in row)


def test_the_vocabulary_has_the_frequent_tokens_most_frequent_first(run):
    counts = token_counts()
    expected = sorted((-n, token) for token, n in counts.items() if n >= 2)
    assert run[0].vocabulary_by_name("tokens") == [token for _, token in expected]
    assert "手 机".encode() in run[0].vocabulary_by_name("tokens")
    assert b"rare" not in run[0].vocabulary_by_name("tokens")


def test_ids_are_positions_in_the_vocabulary_or_buckets_behind_it(run):
    output, data = run
    words = output.vocabulary_by_name("tokens")
    for name, column in (("query_tokens", 0), ("item_title_tokens", 3)):
        texts = tf.constant([raw[column] for raw in ROWS])
        rows = zip(tokens_of(texts, Features()).to_list(), data[name].to_list(), strict=True)
        for tokens, ids in rows:
            assert len(ids) == len(tokens)
            for token, position in zip(tokens, ids, strict=True):
                if token in words:
                    assert position == words.index(token)
                else:
                    assert len(words) <= position < len(words) + 5


def test_whole_values_keep_their_spaces_and_lose_line_breaks(run):
    assert run[0].vocabulary_by_name("values_brand") == [b"apple"]
    values = run[1]["item_brand_value"].to_list()
    assert [value == [0] for value in values] == [True, False, False, True, True]


def test_frequencies_count_clicks_of_the_query_however_it_is_written(run):
    by_query = {"iphone 16": 4.0, "gift": 3.0, "rare": 1.0}
    assert run[1]["query_frequency"].numpy().tolist() == [
        by_query[query] for query in ("iphone 16", "iphone 16", "gift", "rare", "gift")
    ]
    # Of 8 clicks the head is where the first 4 begin, the torso the next 2.4, the tail the rest.
    assert run[1]["stratum"].numpy().tolist() == [0, 0, 1, 2, 1]
    queries, items = (run[1][name].numpy().tolist() for name in ("query_id", "item_hash"))
    assert (queries[0], queries[2], len(set(queries))) == (queries[1], queries[4], 3)
    assert (items[1], len(set(items))) == (items[2], 3)


def test_a_word_is_known_if_training_queries_have_it_often_enough(run):
    assert run[1]["known_share"].numpy().tolist() == [1, 1, 1, 0, 1]
    assert run[0].vocabulary_by_name("query_words") == [b"16", b"iphone", b"gift"]


def test_one_click_makes_a_query_id_known(tmp_path):
    texts = texts_of(as_rows(ROWS[2:]), COLUMNS[3:])
    output = analysed(texts, tmp_path, query_kind="id", **SETTINGS)
    assert output.vocabulary_by_name("queries") == [b"gift", b"rare"]
    assert transformed(output, as_rows(ROWS))["known_share"].numpy().tolist() == [0, 0, 1, 1, 1]


def test_numbers_are_scaled_by_mean_and_deviation(run):
    prices = np.array([row[-1] for row in ROWS])
    clicked = np.repeat(prices, [row[2] for row in ROWS])
    scaled = run[1]["item_price_number"]
    np.testing.assert_allclose(scaled, (prices - clicked.mean()) / clicked.std(), rtol=1e-5)


def test_the_graph_needs_no_column_but_the_query(run):
    layer = run[0].transform_features_layer()
    graph = tf.function(lambda query: layer({"query": query[:, tf.newaxis]}), autograph=False)
    answer = graph(tf.constant(["GIFT", "never seen", "16 iPhone", "apple gift", ""]))
    np.testing.assert_array_equal(answer["query_frequency"], [3.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(answer["stratum"], [1, 2, 2, 2, 2])
    # The order of words is free, and a word of a title is not one of a query.
    np.testing.assert_array_equal(answer["known_share"], [1, 0, 1, 0.5, 0])
    assert answer["query_tokens"].to_list()[0] == run[1]["query_tokens"].to_list()[2]
    assert "item_title_tokens" not in answer


def test_a_vocabulary_may_stay_empty_and_a_short_one_keeps_the_most_frequent(tmp_path):
    shards = [{b"a": 5, b"b": 2, b"": 9}, {b"c": 5, b"d": 1}]
    path = str(tmp_path / "tokens")

    def words(size, least):
        best = [counting._most_frequent(shard, size, least) for shard in shards]
        counting._write_words(best, path, size)
        return (tmp_path / "tokens").read_bytes().split()

    assert words(10, 2) == [b"a", b"c", b"b"]
    assert words(2, 1) == [b"a", b"c"]
    assert words(10, 1000) == [b"unseen"]


def test_queries_that_are_ids_are_looked_up_whole(tmp_path):
    rows = as_rows(ROWS)
    texts = texts_of(rows, COLUMNS[3:])
    output = analysed(texts, tmp_path, query_kind="id", item_id=True, min_token_count=1)
    assert output.vocabulary_by_name("queries") == [b"iphone 16", b"gift", b"rare"]
    assert output.vocabulary_by_name("items") == [b"a", b"b", b"c"]
    ids = transformed(output, rows)["item_id_value"]
    assert ids.to_list() == [[0], [1], [1], [2], [2]]

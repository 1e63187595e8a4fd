"""A corpus in memory against the same counted row by row, as the pipeline counts it."""

import functools
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from small_logs import small_config, small_tables

from experiments import corpora
from experiments import settings as settings_module
from experiments.corpora import corpus, corpus_key, prepared
from experiments.settings import GOODBOOKS, SYNTHETIC, ExperimentSettings
from pebr_tf.cutoff.candidates import ClickedPairs
from pebr_tf.data import splits, synthetic
from pebr_tf.metrics.strata import STRATA
from pebr_tf.models.text import tokens_of


@pytest.fixture(scope="module")
def tables():
    clicks, catalogue = small_tables()
    return clicks.to_pylist(), {row["item_id"]: row for row in catalogue.to_pylist()}


@pytest.fixture(scope="module")
def split_of(tables):
    """The split of each row, as if it were alone, as a worker of the pipeline may see it."""
    split = small_config().split

    @functools.cache
    def alone(query, item):
        (place,) = splits.assign(split, pa.array([query]), pa.array([item]), np.zeros(1))
        return splits.NAMES[place]

    return [alone(row["query"], row["item_id"]) for row in tables[0]]


def test_rows_and_pairs_are_those_of_the_log_in_the_pipeline_s_splits(data, tables, split_of):
    rows = tables[0]
    assert data.queries[data.query].tolist() == [row["query"] for row in rows]
    assert data.item_ids[data.item].tolist() == [row["item_id"] for row in rows]
    assert data.clicks.tolist() == [row["clicks"] for row in rows]
    assert len(set(data.queries)) == len(data.queries)
    for name in splits.NAMES:
        expected = [index for index, split in enumerate(split_of) if split == name]
        assert data.rows(name).tolist() == expected
        assert len(expected) > 50
        pairs = sorted(set(zip(data.query[expected], data.item[expected], strict=True)))
        found = data.pairs(name)
        assert list(zip(found.rows, found.items, strict=True)) == pairs


def train_clicks(tables, split_of, column):
    totals = defaultdict(int)
    for row, split in zip(tables[0], split_of, strict=True):
        totals[row[column]] += row["clicks"] * (split == "train")
    return totals


def test_frequencies_are_clicks_of_the_training_split(data, tables, split_of):
    queries = train_clicks(tables, split_of, "query")
    assert data.frequency.tolist() == [queries[text] for text in data.queries]
    assert data.features["query_frequency"].numpy().tolist() == data.frequency.tolist()
    items = train_clicks(tables, split_of, "item_id")
    assert data.features["item_frequency"].numpy().tolist() == [items[i] for i in data.item_ids]
    assert min(queries.values()) == 0


def vocabulary(tables, split_of, columns, cut):
    """As `pipeline.preprocessing`: tokens of the rows of the training split, counted a row."""
    counts = Counter()
    for row, split in zip(tables[0], split_of, strict=True):
        if split == "train":
            for column in columns:
                text = row["query"] if column == "query" else tables[1][row["item_id"]][column]
                counts.update(cut(text))
    features = small_config().features
    enough = [word for word in counts if counts[word] >= features.min_token_count and word]
    # Most frequent first, equal ones in order of their bytes.
    return sorted(enough, key=lambda word: (-counts[word], word))[: features.vocabulary_size]


@functools.cache
def tokens(text):
    return tokens_of(tf.constant([text]), small_config().features).to_list()[0]


def test_ids_are_places_in_the_vocabulary_and_buckets_behind_it(data, tables, split_of):
    words = vocabulary(tables, split_of, ("query", "title"), tokens)
    assert data.vocabulary_sizes["tokens"] == len(words) == 60
    # The normal form: width, case and accents are gone.
    assert {b"green", b"blue", b"cafe", "手 机".encode()} <= set(words)
    both = {"query_tokens": data.queries, "item_title_tokens": data.titles}
    rare = 0
    for name, texts in both.items():
        for text, ids in zip(texts, data.features[name].to_list(), strict=True):
            cut = tokens(text)
            assert len(ids) == len(cut)
            for word, number in zip(cut, ids, strict=True):
                if word in words:
                    assert number == words.index(word)
                else:
                    bucket = tf.strings.to_hash_bucket_fast(word, 7).numpy()
                    assert number == len(words) + bucket
                    rare += 1
    assert rare > 50


def test_categories_are_looked_up_whole_and_an_empty_one_is_no_word(data, tables, split_of):
    brands = vocabulary(tables, split_of, ("brand",), lambda text: [text])
    assert set(brands) == {"acme", "uni"}
    assert data.vocabulary_sizes["values_brand"] == 2
    found = data.features["item_brand_value"].to_list()
    for row, ids in zip(tables[1].values(), found, strict=True):
        if row["brand"]:
            assert ids == [brands.index(row["brand"])]
        else:
            assert 2 <= ids[0] < 2 + 7


def test_identities_are_the_pipeline_s_hashes(data):
    for text, number in zip(data.queries, data.features["query_id"].numpy(), strict=True):
        for written, plain in (("Blue", "blue"), ("café", "cafe"), ("ｇｒｅｅｎ", "green")):
            text = text.replace(written, plain)
        assert number == tf.strings.to_hash_bucket_fast(text, 2**63 - 1).numpy()
    hashes = tf.strings.to_hash_bucket_fast(data.item_ids.tolist(), 2**63 - 1).numpy()
    np.testing.assert_array_equal(data.features["item_hash"].numpy(), hashes)


def test_all_queries_count_where_the_truth_does():
    clicks, catalogue = small_tables()
    texts = pa.array(["never asked", *clicks["query"].unique().to_pylist()[::-1]])
    truth = ClickedPairs(np.arange(len(texts)), np.zeros(len(texts), np.int64))
    data = prepared("small", small_config(), clicks, catalogue, texts, truth)
    assert data.queries.tolist() == texts.to_pylist()
    assert data.queries[data.query].tolist() == clicks["query"].to_pylist()
    assert data.frequency[0] == 0
    assert STRATA[data.strata[0]] == "tail"
    assert data.truth is truth


def test_the_synthetic_log_and_its_truth_are_those_that_are_written(monkeypatch):
    """A tenth of the small ones."""
    values = {"items": 200, "queries": 90, "clicks": 4_000}
    monkeypatch.setitem(settings_module._SPECS, "small", values)
    settings = ExperimentSettings("small", 1)
    spec = settings.spec
    corpus.cache_clear()
    data = corpus(settings, SYNTHETIC)
    corpus.cache_clear()
    world = synthetic.make_world(spec)
    rows = pa.concat_tables(synthetic.click_chunks(world, spec)).to_pylist()
    assert len(data.query) == len(rows) == 4_000
    for place in (0, 1_234, 3_999):
        assert data.queries[data.query[place]] == rows[place]["query"]
        assert data.item_ids[data.item[place]] == rows[place]["item_id"]
    assert len(data.queries) == 90
    relevant = set(zip(data.truth.rows.tolist(), data.truth.items.tolist(), strict=True))
    assert len(relevant) == len(data.truth.rows) == world.queries.relevant_counts.sum()
    # All but the noise, of which some hits by chance.
    inside = np.mean([pair in relevant for pair in zip(data.query, data.item, strict=True)])
    assert 0.93 < inside < 0.97


def test_the_key_of_goodbooks_is_the_content_of_its_files(tmp_path):
    for name in ("books.csv", "tags.csv", "book_tags.csv"):
        (tmp_path / name).write_text(name)
    (tmp_path / "README.md").write_text("any")

    def key():
        corpora._digest.cache_clear()
        return corpus_key(ExperimentSettings(goodbooks=tmp_path), GOODBOOKS)

    first = key()
    (tmp_path / "README.md").write_text("other")
    assert key() == first
    (tmp_path / "tags.csv").write_text("changed")
    assert key() != first


def test_cold_items_have_no_click_in_training_and_all_clicks_elsewhere(data):
    cold = prepared("small", small_config(), *small_tables(), cold=True)
    seen, tested = (set(cold.item[cold.rows(name)].tolist()) for name in ("train", "test"))
    assert tested
    assert not seen & tested
    assert cold.features["item_frequency"].numpy()[[*tested]].max() == 0
    # The rows keep their splits, or lose them.
    held_out = corpora._is_cold(data.item_ids.tolist())[data.item]
    for name in splits.NAMES:
        expected = [row for row in data.rows(name) if held_out[row] == (name != "train")]
        assert cold.rows(name).tolist() == expected
    assert corpus_key(ExperimentSettings(held_out="items"), SYNTHETIC) != corpus_key(
        ExperimentSettings(held_out="queries"), SYNTHETIC
    )


def test_the_text_of_an_item_is_all_its_text_columns():
    config = small_config().replace("features.item_text", ("brand", "title"))
    clicks, catalogue = small_tables()
    rows = catalogue.to_pylist()
    made = prepared("small", config, clicks, catalogue).item_texts.tolist()
    assert made == [f"{row['brand']} {row['title']}" for row in rows]

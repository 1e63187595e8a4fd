"""Click logs in memory: split, counted and turned into ids as the pipeline's components do it.

An experiment trains dozens of towers on the same log. The pipeline reads, checks and transforms in
Beam, once per release; here the same functions (`pebr_tf.data.splits`, `pebr_tf.models.text`,
`pebr_tf.metrics.strata`) run once on columns, and every training takes ids from memory.
"""

import functools
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from experiments.settings import GOODBOOKS, ExperimentSettings
from pebr_tf.config import Config, Features
from pebr_tf.cutoff.candidates import ClickedPairs
from pebr_tf.data import goodbooks, splits, synthetic
from pebr_tf.data.synthetic.text import catalogue_table
from pebr_tf.metrics.strata import strata_of
from pebr_tf.models.fields import Field, item_fields, query_fields
from pebr_tf.models.text import normalised, tokens_of

_TEXTS_PER_BLOCK = 8_192
_LARGEST = 2**63 - 1
# The split of rows that no split has.
_UNUSED = -1
_GOODBOOKS_FILES = ("books.csv", "tags.csv", "book_tags.csv", "book_tags.csv.zip")


@dataclass(frozen=True)
class Corpus:
    """A click log of M rows on Q queries and N items.

    Attributes:
      name: Of the data set.
      config: What it is measured with.
      queries: [Q] texts.
      item_ids: [N] ids.
      titles: [N] what a reader sees of an item.
      query: [M] int64 places of the queries.
      item: [M] int64 places of the items.
      clicks: [M] float32.
      split: [M] int8 places in `splits.NAMES`.
      frequency: [Q] float32 clicks in the training split.
      strata: [Q] int64 places in `pebr_tf.metrics.strata.STRATA`.
      features: Inputs of the towers by name, one row per query or item.
      vocabulary_sizes: Words of each vocabulary.
      item_texts: [N] texts of the columns `features.item_text`.
      truth: Pairs that are relevant, clicked or not; None where that is not known.
    """

    name: str
    config: Config
    queries: np.ndarray
    item_ids: np.ndarray
    titles: np.ndarray
    query: np.ndarray
    item: np.ndarray
    clicks: np.ndarray
    split: np.ndarray
    frequency: np.ndarray
    strata: np.ndarray
    features: Mapping[str, Any]
    vocabulary_sizes: Mapping[str, int]
    item_texts: np.ndarray
    truth: ClickedPairs | None = None

    def rows(self, split: str) -> np.ndarray:
        """[m] places of the rows of a split."""
        return np.flatnonzero(self.split == splits.NAMES.index(split))

    def pairs(self, split: str) -> ClickedPairs:
        """The different pairs of a split, by query."""
        rows = self.rows(split)
        keys = np.unique(self.query[rows] * len(self.item_ids) + self.item[rows])
        return ClickedPairs(*np.divmod(keys, len(self.item_ids)))


def corpus_key(settings: ExperimentSettings, dataset: str) -> dict[str, Any]:
    """What decides a corpus, for the name of what is computed from it."""
    cold = {"held_out": "items"} if settings.held_out == "items" else {}
    return {**log_key(settings, dataset), **cold}


def log_key(settings: ExperimentSettings, dataset: str) -> dict[str, Any]:
    """What decides the texts and the rows, however they are split."""
    if dataset == GOODBOOKS:
        return {"dataset": dataset, "files": _digest(settings.goodbooks)}
    return {"dataset": dataset, **vars(settings.spec)}


@functools.lru_cache(maxsize=2)
def corpus(settings: ExperimentSettings, dataset: str) -> Corpus:
    """The click log of a data set, read or made once per process."""
    config, cold = settings.config(dataset), settings.held_out == "items"
    if dataset == GOODBOOKS:
        assert settings.goodbooks is not None
        data = goodbooks.read_goodbooks(settings.goodbooks)
        return prepared(dataset, config, data.clicks, data.catalogue, cold=cold)
    world = synthetic.make_world(settings.spec)
    clicks = pa.concat_tables(synthetic.click_chunks(world, settings.spec))
    catalogue = catalogue_table(world.catalogue, 0, len(world.catalogue))
    queries = world.queries
    rows = np.repeat(np.arange(len(queries)), queries.relevant_counts)
    known = ClickedPairs(rows, queries.item_indices.astype(np.int64))
    return prepared(dataset, config, clicks, catalogue, queries.texts, known, cold)


def prepared(
    name: str,
    config: Config,
    clicks: pa.Table,
    catalogue: pa.Table,
    texts: pa.Array | None = None,
    truth: ClickedPairs | None = None,
    cold: bool = False,
) -> Corpus:
    """A corpus from its tables.

    Args:
      name: Of the data set.
      config: Its sections split, strata and features are used here.
      clicks: Columns query, item_id and clicks; all items are in the catalogue.
      catalogue: Column item_id and those that the features name.
      texts: All queries, if `truth` counts in them; None: those of the log.
      truth: The relevant pairs.
      cold: Whether a tenth of the items is held out, with all their clicks: training sees none, and
        clicks on others neither calibrate nor test.
    """
    log = {column: clicks[column].combine_chunks() for column in ("query", "item_id")}
    texts = log["query"].unique() if texts is None else texts
    ids = catalogue["item_id"].combine_chunks()
    query, item = (
        pa.compute.index_in(column, value_set=values).to_numpy().astype(np.int64)
        for column, values in ((log["query"], texts), (log["item_id"], ids))
    )
    counts = clicks["clicks"].to_numpy().astype(np.float32)
    split = splits.assign(config.split, log["query"], log["item_id"], np.zeros(len(query)))
    if cold:
        held_out = _is_cold(ids.to_pylist())[item]
        split = np.where(held_out == (split == splits.TRAIN), _UNUSED, split)
    train = split == splits.TRAIN
    frequency = np.bincount(query[train], counts[train], len(texts)).astype(np.float32)
    popularity = np.bincount(item[train], counts[train], len(ids)).astype(np.float32)
    columns = {"query": normalised(tf.constant(texts.to_pylist()), config.features.lowercase)}
    for field in item_fields(config.features):
        columns[field.column] = tf.constant(catalogue[field.column].to_pylist())
    used = {"query": np.bincount(query[train], minlength=len(texts))}
    used["item"] = np.bincount(item[train], minlength=len(ids))
    features, sizes = _inputs(config.features, columns, used)
    features["query_id"] = tf.strings.to_hash_bucket_fast(columns["query"], _LARGEST)
    features["item_hash"] = tf.strings.to_hash_bucket_fast(tf.constant(ids.to_pylist()), _LARGEST)
    features["query_frequency"] = tf.constant(frequency)
    features["item_frequency"] = tf.constant(popularity)
    return Corpus(
        name=name,
        config=config,
        queries=np.array(texts.to_pylist(), object),
        item_ids=np.array(ids.to_pylist(), object),
        titles=np.array(catalogue["title"].to_pylist(), object),
        query=query,
        item=item,
        clicks=counts,
        split=split,
        frequency=frequency,
        strata=strata_of(frequency, config.strata).astype(np.int64),
        features=features,
        vocabulary_sizes=sizes,
        item_texts=_joined([catalogue[name] for name in config.features.item_text]),
        truth=truth,
    )


def _is_cold(ids: list[str]) -> np.ndarray:
    """[N] whether an item is one of the tenth that is held out."""
    return np.array([hashlib.blake2b(each.encode()).digest()[0] % 10 == 0 for each in ids])


def _inputs(
    features: Features, columns: Mapping[str, tf.Tensor], used: Mapping[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, int]]:
    """Ids of the towers' inputs, and the sizes of their vocabularies.

    Args:
      features: What they are made of.
      columns: [Q] queries and [N] columns of the items.
      used: Rows of the training split that each query, and each item, has.
    """
    sides = [(field, "query") for field in query_fields(features)]
    sides += [(field, "item") for field in item_fields(features)]
    words = {field.name: _words(field, columns[field.column], features) for field, _ in sides}
    counts: dict[str, Counter[bytes]] = {}
    for field, side in sides:
        ragged = words[field.name]
        weights = np.repeat(used[side], ragged.row_lengths().numpy())
        different, places = tf.unique(ragged.flat_values)
        totals = np.bincount(places.numpy(), weights, len(different))
        counter = counts.setdefault(field.vocabulary, Counter())
        counter.update(dict(zip(different.numpy().tolist(), totals.tolist(), strict=True)))
    inputs: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    tables: dict[str, tf.lookup.StaticVocabularyTable] = {}
    for name, counter in counts.items():
        least = features.min_token_count
        kept = sorted((-count, word) for word, count in counter.items() if count >= least and word)
        chosen = [word for _, word in kept[: features.vocabulary_size]]
        places = tf.range(len(chosen), dtype=tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(chosen, places)
        tables[name] = tf.lookup.StaticVocabularyTable(initializer, features.oov_buckets)
        sizes[name] = len(chosen)
    for field, _ in sides:
        inputs[field.name] = words[field.name].with_flat_values(
            tables[field.vocabulary].lookup(words[field.name].flat_values)
        )
    return inputs, sizes


def _joined(columns: list[pa.ChunkedArray]) -> np.ndarray:
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return np.array([" ".join(row) for row in rows], object)


def _words(field: Field, column: tf.Tensor, features: Features) -> tf.RaggedTensor:
    if field.kind == "number":
        raise ValueError("experiments have no numbers among the features.")
    if field.kind == "whole":
        return tf.RaggedTensor.from_uniform_row_length(column, 1).with_row_splits_dtype(tf.int64)
    return tf.concat([tokens_of(part, features) for part in _blocks(column)], axis=0)


def _blocks(column: tf.Tensor) -> Iterator[tf.Tensor]:
    for begin in range(0, len(column), _TEXTS_PER_BLOCK):
        yield column[begin : begin + _TEXTS_PER_BLOCK]


@functools.lru_cache(maxsize=1)
def _digest(directory: Path) -> str:
    """SHA-256 over the files of goodbooks-10k."""
    digest = hashlib.sha256()
    for name in _GOODBOOKS_FILES:
        if (directory / name).exists():
            digest.update(hashlib.sha256((directory / name).read_bytes()).digest())
    return digest.hexdigest()

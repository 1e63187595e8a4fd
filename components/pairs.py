"""Reads the clicked (query, item) pairs of Examples, each pair once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from tfx.types import Artifact

from components.example_files import split_files
from pebr_tf.cutoff.candidates import ClickedPairs

BATCH = 16_384
# Rows that are read before equal pairs are merged, to bound the memory.
ROWS_AT_ONCE = 2_000_000
# Most queries of a split that are compared with the whole catalogue.
QUERY_LIMIT = 20_000
_FEATURES = {
    "query": tf.io.FixedLenFeature([], tf.string),
    "item_id": tf.io.FixedLenFeature([], tf.string),
    "clicks": tf.io.FixedLenFeature([], tf.int64),
}
# Large: a column may have more than 2 GiB.
_TEXT = pa.large_binary()
_SCHEMA = pa.schema([("query", _TEXT), ("item_id", _TEXT), ("clicks", pa.int64())])


@dataclass(frozen=True)
class ClickLogPairs:
    """Different (query, item) pairs that have clicks.

    Attributes:
      queries: The different queries.
      rows: [P] position in `queries` of each pair's query.
      item_ids: [P] UTF-8 text.
      clicks: Sum of the clicks of all pairs.
    """

    queries: list[str]
    rows: np.ndarray
    item_ids: pa.Array
    clicks: int

    def limited(self, count: int) -> ClickLogPairs:
        """The pairs of at most `count` queries: a random sample with a fixed seed."""
        if len(self.queries) <= count:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.queries))[:count])
        position = np.full(len(self.queries), -1)
        position[chosen] = np.arange(count)
        kept = position[self.rows] >= 0
        queries = [self.queries[row] for row in chosen]
        item_ids = self.item_ids.filter(pa.array(kept))
        return ClickLogPairs(queries, position[self.rows[kept]], item_ids, self.clicks)

    def joined(self, other: ClickLogPairs) -> ClickLogPairs:
        """These pairs and those of other queries."""
        return ClickLogPairs(
            self.queries + other.queries,
            np.concatenate([self.rows, other.rows + len(self.queries)]),
            pa.concat_arrays([self.item_ids, other.item_ids]),
            self.clicks + other.clicks,
        )

    def pairs(self, ids: np.ndarray) -> ClickedPairs:
        """The pairs with items as positions in `ids` [N]; -1 for an item that is not there."""
        known = pa.array(ids).cast(_TEXT)
        found = pc.fill_null(pc.index_in(self.item_ids, value_set=known), -1)
        return ClickedPairs(self.rows, found.to_numpy().astype(np.int64))


def read_pairs(examples: Artifact, split: str) -> ClickLogPairs:
    """The clicked pairs of a split, queries sorted; no pair if the split does not exist."""
    table = _clicked(list(_tables(examples, split)))
    encoded = table["query"].combine_chunks().dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    position = np.empty_like(order, dtype=np.int64)
    position[order] = np.arange(len(order))
    queries = [value.decode("utf-8") for value in encoded.dictionary.take(order).to_pylist()]
    return _pairs_of(table, queries, position[encoded.indices.to_numpy()])


def read_training_pairs(examples: Artifact, queries: list[str]) -> tuple[ClickLogPairs, int]:
    """The clicked pairs of `queries` in the training split, and the clicks of the whole split."""
    wanted = pa.array([query.encode("utf-8") for query in queries], _TEXT)
    total, tables = 0, []
    for table in _tables(examples, "train"):
        total += _click_sum(table)
        tables.append(table.filter(pc.is_in(table["query"], value_set=wanted)))
    table = _clicked(tables)
    rows = pc.index_in(table["query"], value_set=wanted).to_numpy()
    return _pairs_of(table, queries, rows.astype(np.int64)), total


def _clicked(tables: list[pa.Table]) -> pa.Table:
    merged = _merged(tables)
    return merged.filter(pc.greater(merged["clicks"], 0))


def _pairs_of(table: pa.Table, queries: list[str], rows: np.ndarray) -> ClickLogPairs:
    item_ids = table["item_id"].combine_chunks()
    return ClickLogPairs(queries, rows, item_ids, _click_sum(table))


def _click_sum(table: pa.Table) -> int:
    return int(pc.sum(table["clicks"]).as_py() or 0)


def _tables(examples: Artifact, split: str) -> Iterator[pa.Table]:
    """The rows of a split, at most ROWS_AT_ONCE per table, with equal pairs merged."""
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in _batches(examples, split):
        batches.append(batch)
        rows += len(batch)
        if rows >= ROWS_AT_ONCE:
            yield _merged([pa.Table.from_batches(batches, _SCHEMA)])
            batches, rows = [], 0
    if batches:
        yield _merged([pa.Table.from_batches(batches, _SCHEMA)])


def _merged(tables: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables([_SCHEMA.empty_table(), *tables])
    summed = table.group_by(["query", "item_id"]).aggregate([("clicks", "sum")])
    columns = [summed["query"], summed["item_id"], summed["clicks_sum"]]
    return pa.table(columns, schema=_SCHEMA)


def _batches(examples: Artifact, split: str) -> Iterator[pa.RecordBatch]:
    files = tf.constant(split_files(examples, split), tf.string)
    records = tf.data.TFRecordDataset(files, "GZIP").batch(BATCH)
    parsed = records.map(lambda serialized: tf.io.parse_example(serialized, _FEATURES))
    for batch in parsed.prefetch(2).as_numpy_iterator():
        columns = [pa.array(batch[field.name], field.type) for field in _SCHEMA]
        yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

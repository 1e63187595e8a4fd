"""Clicked pairs of a split of Examples, each once, and the queries among them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from tfx.dsl.io import fileio
from tfx.types import Artifact, artifact_utils

from pebr_tf.cutoff import ClickedPairs

BATCH = 16_384
# Rows read before equal pairs are added up, to bound the memory.
ROWS_AT_ONCE = 2_000_000
# Queries of a split that are compared with the whole catalogue.
MOST_QUERIES = 20_000
_FEATURES = {
    "query": tf.io.FixedLenFeature([], tf.string),
    "item_id": tf.io.FixedLenFeature([], tf.string),
    "clicks": tf.io.FixedLenFeature([], tf.int64),
}
_SCHEMA = pa.schema([("query", pa.binary()), ("item_id", pa.binary()), ("clicks", pa.int64())])


@dataclass(frozen=True)
class Clicked:
    """Pairs of queries and items with clicks.

    Attributes:
      queries: The different queries, sorted.
      rows: [P] the place in `queries` of each pair.
      item_ids: [P] text.
      clicks: All clicks of the pairs.
    """

    queries: list[str]
    rows: np.ndarray
    item_ids: np.ndarray
    clicks: int

    def limited(self, most: int) -> Clicked:
        """The pairs of at most so many queries, a random choice that is always the same."""
        if len(self.queries) <= most:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.queries))[:most])
        place = np.full(len(self.queries), -1)
        place[chosen] = np.arange(most)
        kept = place[self.rows] >= 0
        names = [self.queries[row] for row in chosen]
        return Clicked(names, place[self.rows[kept]], self.item_ids[kept], self.clicks)

    def pairs(self, ids: np.ndarray) -> ClickedPairs:
        """The pairs with places in `ids` [N], -1 for an item that is not there."""
        order = np.argsort(ids)
        place = np.searchsorted(ids, self.item_ids, sorter=order)
        found = order[np.minimum(place, len(ids) - 1)]
        return ClickedPairs(self.rows, np.where(ids[found] == self.item_ids, found, -1))


def read_pairs(examples: Artifact, split: str) -> Clicked:
    """The pairs of a split that have clicks; none if there is no such split."""
    clicked = _merged(list(_tables(examples, split)))
    clicked = clicked.filter(pc.greater(clicked["clicks"], 0))
    texts = [column.to_pylist() for column in (clicked["query"], clicked["item_id"])]
    queries, items = ([value.decode("utf-8") for value in column] for column in texts)
    names, rows = np.unique(np.array(queries, np.str_), return_inverse=True)
    total = int(pc.sum(clicked["clicks"]).as_py() or 0)
    return Clicked(names.tolist(), rows, np.array(items, np.str_), total)


def read_known(examples: Artifact, queries: list[str]) -> tuple[Clicked, int]:
    """The pairs of the training split that belong to `queries`, and all clicks of that split.

    The rows are places in `queries`.
    """
    wanted = pa.array([query.encode("utf-8") for query in queries], pa.binary())
    total, tables = 0, []
    for table in _tables(examples, "train"):
        total += int(pc.sum(table["clicks"]).as_py() or 0)
        tables.append(table.filter(pc.is_in(table["query"], value_set=wanted)))
    found = _merged(tables)
    found = found.filter(pc.greater(found["clicks"], 0))
    rows = pc.index_in(found["query"], value_set=wanted).to_numpy()
    items = [value.decode("utf-8") for value in found["item_id"].to_pylist()]
    clicks = int(pc.sum(found["clicks"]).as_py() or 0)
    return Clicked(queries, rows.astype(np.int64), np.array(items, np.str_), clicks), total


def training_queries(examples: Artifact, most: int) -> list[str]:
    """At most so many different queries of the training split, always the same."""
    names: pa.Array = pa.array([], pa.binary())
    for table in _tables(examples, "train"):
        column = table["query"].combine_chunks()
        names = pc.unique(pa.concat_arrays([names, pc.unique(column)]))
    queries = sorted(value.decode("utf-8") for value in names.to_pylist())
    if len(queries) <= most:
        return queries
    chosen = np.random.default_rng(0).permutation(len(queries))[:most]
    return [queries[place] for place in np.sort(chosen)]


def _tables(examples: Artifact, split: str) -> Iterator[pa.Table]:
    """The rows of a split, some millions at a time, equal pairs added up."""
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
    """The pairs of some tables, each once, with all its clicks."""
    table = pa.concat_tables([_SCHEMA.empty_table(), *tables])
    summed = table.group_by(["query", "item_id"]).aggregate([("clicks", "sum")])
    columns = [summed["query"], summed["item_id"], summed["clicks_sum"]]
    return pa.table(columns, schema=_SCHEMA)


def _batches(examples: Artifact, split: str) -> Iterator[pa.RecordBatch]:
    if split not in artifact_utils.decode_split_names(examples.split_names):
        return
    pattern = os.path.join(artifact_utils.get_split_uri([examples], split), "*")
    records = tf.data.TFRecordDataset(sorted(fileio.glob(pattern)), "GZIP").batch(BATCH)
    parsed = records.map(lambda serialized: tf.io.parse_example(serialized, _FEATURES))
    for batch in parsed.prefetch(2).as_numpy_iterator():
        columns = [pa.array(batch[field.name], field.type) for field in _SCHEMA]
        yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

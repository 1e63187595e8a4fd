"""The distinct texts of training, and samples of the clicks: tables that Beam merges and writes.

A row of the split `texts` is either a query or an item, with its training clicks. The other side is
empty text or 0. Long texts of items are therefore stored and analysed once per item, however often
the items are clicked. Samples hold clicks with the columns of their items, for the statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.utils import shared

from components.click_log_example_gen.bundle_writer import BundleSummary, BundleWriter
from components.click_log_example_gen.items import ENCODED_ROWS, read_items
from pebr_tf.data import splits
from pebr_tf.data.click_log import item_columns

SPLIT = "texts"
# Outputs of the step that writes clicks; SAMPLES is also the name of their artifact.
COUNTS, SAMPLES = "counts", "samples"
# Tables that workers merge and write in parallel.
SHARDS = 16
# Orders the clicks of a sample: a random number.
SAMPLE_ORDER = "sample_order"
_COUNTS = pa.schema([("query", pa.string()), ("item_id", pa.string()), ("clicks", pa.int64())])
# A split, and the number of a table of it.
Key = tuple[str, int]


def counted(clicks: pa.RecordBatch) -> pa.Table:
    """The queries and items of training clicks, each once, with their clicks."""
    table = pa.Table.from_batches([clicks]).select(_COUNTS.names)
    empty = pa.array([""] * len(clicks), pa.string())
    sides = [table.set_column(number, _COUNTS.names[number], empty) for number in (0, 1)]
    return merged(sides)


def of_catalogue(path: str) -> Iterator[tuple[Key, pa.Table]]:
    """All items without clicks, in shards, so that `texts` has the whole catalogue."""
    if not path:
        return
    ids = read_items(path, only_ids=True).column("item_id")
    empty = pa.array([""] * len(ids), pa.string())
    none = pa.array(np.zeros(len(ids), np.int64))
    yield from in_shards(pa.table([empty, ids, none], schema=_COUNTS))


def merged(tables: Iterable[pa.Table]) -> pa.Table:
    """One row per text; clicks are summed."""
    table = pa.concat_tables([_COUNTS.empty_table(), *tables])
    summed = table.group_by(["query", "item_id"]).aggregate([("clicks", "sum")])
    return pa.table([summed[name] for name in ("query", "item_id", "clicks_sum")], schema=_COUNTS)


def in_shards(counts: pa.Table) -> Iterator[tuple[Key, pa.Table]]:
    """Non-empty parts of counts; the part of a text depends on the text alone."""
    texts = pc.binary_join_element_wise(counts["query"], counts["item_id"], "").combine_chunks()
    shards = splits.hashes(texts) % SHARDS
    for number in np.unique(shards).tolist():
        yield (SPLIT, number), counts.filter(pa.array(shards == number))


def sampled(tables: Iterable[pa.Table], count: int) -> pa.Table:
    """At most `count` clicks: those with the least numbers in the column SAMPLE_ORDER."""
    table = pa.concat_tables(tables)
    if len(table) <= count:
        return table
    return table.take(pc.select_k_unstable(table, count, [(SAMPLE_ORDER, "ascending")]))


class WriteJoined(beam.DoFn):
    """(Key, table) -> Examples of its rows with the columns of their items; one summary each."""

    def __init__(self, table: str, folder: str):
        self._table = table
        self._folder = folder
        self._shared = shared.Shared()
        self._items: pa.Table | None = None

    def process(self, element: tuple[Key, pa.Table], path: str) -> Iterator[BundleSummary]:
        if not path:
            return
        (split, number), rows = element
        # Sorted, so that the same clicks give the same files on every runner.
        order = [SAMPLE_ORDER] if SAMPLE_ORDER in rows.column_names else ["query", "item_id"]
        rows = rows.sort_by([(name, "ascending") for name in order])
        rows = rows.select([name for name in rows.column_names if name != SAMPLE_ORDER])
        writer = BundleWriter(self._table, self._folder)
        if self._items is None:
            # Once for all threads of a worker.
            self._items = self._shared.acquire(lambda: read_items(path).combine_chunks())
        items = self._items
        for batch in rows.to_batches(ENCODED_ROWS):
            joined = pa.RecordBatch.from_arrays(
                [*batch.columns, *item_columns(batch.column("item_id"), items).values()],
                [*batch.schema.names, *items.column_names[1:]],
            )
            writer.keep(split, joined, (number, 0))
        yield writer.close()

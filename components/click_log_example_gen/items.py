"""Checks the items, keeps each once, and writes Examples and the table of the towers' columns."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from components.click_log_example_gen import inputs
from components.click_log_example_gen.bundle_writer import (
    BundleSummary,
    BundleWriter,
    Rows,
    create,
)
from pebr_tf.data.click_log import TWICE
from pebr_tf.data.ingest_settings import IngestSettings
from pebr_tf.data.tables import Batch, Rejected

SPLIT = "items"
TABLE_FILE = "items.arrow"
SUMMARIES = "summaries"
ENCODED_ROWS = 65_536
# Makes an output of `finish_bundle`.
at_end = GlobalWindows.windowed_value_at_end_of_window


def read_items(path: str, only_ids: bool = False) -> pa.Table:
    """The table of items that `WriteCatalogue` wrote; its first column is `item_id`."""
    options = pa.ipc.IpcReadOptions(included_fields=[0] if only_ids else None)
    with inputs.source_of(path, "auto").open() as file:
        return pa.ipc.open_file(file, options=options).read_all()


class CheckItems(beam.DoFn):
    """`Rows` of a catalogue -> `Rows` of good items; one summary per bundle to SUMMARIES."""

    def __init__(self, settings: IngestSettings, folder: str):
        self._settings = settings
        self._folder = folder

    def start_bundle(self) -> None:
        self._writer = BundleWriter(SPLIT, self._folder)

    def process(self, rows: Rows) -> Iterator[Rows]:
        good = self._settings.good_items(rows.batch)
        self._writer.read(len(rows.batch) + len(rows.batch.rejected))
        self._writer.reject(rows, good.rejected)
        # The rejected rows are written.
        good = dataclasses.replace(good, rejected=Rejected.none())
        yield dataclasses.replace(rows, batch=good)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield beam.pvalue.TaggedOutput(SUMMARIES, at_end(self._writer.close()))


class FindItems(beam.DoFn):
    """`Rows` of a click log with the columns of items -> `Rows` of items not seen in the bundle.

    This has no `BundleSummary`, because clicks are counted where they are written.
    """

    def __init__(self, settings: IngestSettings, now: int):
        self._settings = settings
        self._now = now

    def start_bundle(self) -> None:
        self._seen = pa.array([], pa.string())

    def process(self, rows: Rows) -> Iterator[Rows]:
        _, good = self._settings.good_clicks_and_items(rows.batch, self._now)
        ids = good.columns.column("item_id")
        new = _first_of_each(ids) & ~pc.is_in(ids, value_set=self._seen).to_numpy(
            zero_copy_only=False
        )
        self._seen = pa.concat_arrays([self._seen, ids.filter(pa.array(new))])
        chosen = Batch(good.columns.filter(pa.array(new)), good.rows[new], Rejected.none())
        yield dataclasses.replace(rows, batch=chosen)


class WriteCatalogue(beam.DoFn):
    """All `Rows` of items, as a side input -> path of the table of items; a summary to SUMMARIES.

    The path is empty if a file of the catalogue failed. The first row of an item is kept, in the
    order of files and rows.

    Args:
      reject_repeats: Whether further rows of an item are rejected; otherwise they are ignored.
    """

    def __init__(self, settings: IngestSettings, folder: str, reject_repeats: bool):
        self._settings = settings
        self._folder = folder
        self._reject_repeats = reject_repeats

    def process(
        self, _: object, batches: Iterable[Rows], failed: Iterable[BundleSummary]
    ) -> Iterator[str | beam.pvalue.TaggedOutput]:
        if any(failed):
            yield ""
            return
        writer = BundleWriter(SPLIT, self._folder)
        path = os.path.join(self._folder, TABLE_FILE)
        # Rows of a BigQuery query have no numbers and therefore no order.
        ordered = sorted(batches, key=lambda rows: (rows.source_number, *rows.batch.rows[:1]))
        self._write(writer, [rows for rows in ordered if len(rows.batch)], path)
        yield beam.pvalue.TaggedOutput(SUMMARIES, writer.close())
        yield path

    def _write(self, writer: BundleWriter, ordered: list[Rows], path: str) -> None:
        names = [*self._settings.texts, *self._settings.numbers]
        batches = [rows.batch.columns for rows in ordered]
        table = pa.Table.from_batches(batches, self._schema())
        first = _first_of_each(table.column("item_id"))
        begin = 0
        for rows in ordered:
            of_batch = first[begin : begin + len(rows.batch)]
            begin += len(rows.batch)
            if self._reject_repeats:
                writer.reject(rows, Rejected.of(rows.batch.rows[~of_batch], TWICE))
            else:
                writer.read(int(of_batch.sum()))
        table = table.filter(pa.array(first)).combine_chunks()
        for number, batch in enumerate(table.to_batches(ENCODED_ROWS)):
            writer.keep(SPLIT, batch, (number, 0))
        joined = table.select(["item_id", *names])
        for name in self._settings.cut:
            column = pc.utf8_slice_codeunits(joined[name], 0, self._settings.characters)
            joined = joined.set_column(joined.column_names.index(name), name, column)
        with create(path) as file, pa.ipc.new_file(file, joined.schema) as arrow:
            arrow.write_table(joined)

    def _schema(self) -> pa.Schema:
        settings = self._settings
        texts = [(name, pa.string()) for name in (*settings.texts, *settings.payload)]
        numbers = [(name, pa.float32()) for name in settings.numbers]
        return pa.schema([*texts, *numbers, ("item_id", pa.string())])


def _first_of_each(ids: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """[M] bool, true for the first row of each id."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first = np.zeros(len(codes), bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first

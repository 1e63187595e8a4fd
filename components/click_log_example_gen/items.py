"""The catalogue: items checked, each once, as Examples and as a table to join clicks to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from components.click_log_example_gen.ledger import Ledger, Part, create
from components.click_log_example_gen.rows import Rows
from components.click_log_example_gen.settings import Settings
from pebr_tf.data.click_log import check_clicks_and_items, check_items
from pebr_tf.data.tables import Batch, Rejected

SPLIT = "items"
TWICE = "item twice"
TABLE_FILE = "items.arrow"
PARTS = "parts"
ENCODED_ROWS = 65_536


def at_end(value: object) -> WindowedValue:
    """What a bundle leaves at its end."""
    window = GlobalWindow()
    return WindowedValue(value, window.max_timestamp(), [window])


class CheckItems(beam.DoFn):
    """`Rows` of a catalogue -> `Rows` of good items; a `Part` a bundle to PARTS."""

    def __init__(self, settings: Settings, folder: str):
        self._settings = settings
        self._folder = folder

    def start_bundle(self) -> None:
        self._ledger = Ledger(SPLIT, self._folder)

    def process(self, rows: Rows) -> Iterator[Rows]:
        settings, batch = self._settings, rows.batch
        texts = (*settings.texts, *settings.payload)
        good = check_items(batch, settings.data.item_column, texts, settings.numbers)
        self._ledger.read(len(batch) + len(batch.rejected))
        self._ledger.refuse(rows, good.rejected)
        yield Rows(rows.place, rows.source, _alone(good), rows.numbered)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield beam.pvalue.TaggedOutput(PARTS, at_end(self._ledger.close()))


class FindItems(beam.DoFn):
    """`Rows` of a click log that has the items' columns -> `Rows` of items that are new.

    Clicks are counted where they are written, so this has no `Part`. A bundle holds the ids that
    it has seen, at most those of the catalogue.
    """

    def __init__(self, settings: Settings, now: int):
        self._settings = settings
        self._now = now

    def start_bundle(self) -> None:
        self._seen = pa.array([], pa.string())

    def process(self, rows: Rows) -> Iterator[Rows]:
        settings = self._settings
        texts = (*settings.texts, *settings.payload)
        _, good = check_clicks_and_items(
            rows.batch, settings.data, self._now, texts, settings.numbers
        )
        ids = good.columns.column("item_id")
        new = _first_of_each(ids) & ~_numpy(pc.is_in(ids, value_set=self._seen))
        self._seen = pa.concat_arrays([self._seen, ids.filter(pa.array(new))])
        yield Rows(rows.place, rows.source, _alone(_chosen(good, new)), rows.numbered)


class WriteCatalogue(beam.DoFn):
    """All `Rows` of items, as a side input -> path of the table of the items; `Part` to PARTS.

    The path is empty if anything of the catalogue failed.
    Of an item that is there twice the first row is kept, in the order of files and rows.

    Args:
      settings: Of the run.
      folder: Of temporary files.
      repeats: Whether further rows of an item are refused; else they are none of its rows.
    """

    def __init__(self, settings: Settings, folder: str, repeats: bool):
        self._settings = settings
        self._folder = folder
        self._refuse_repeats = repeats

    def process(
        self, _: object, batches: Iterable[Rows], failed: Iterable[Part]
    ) -> Iterator[str | beam.pvalue.TaggedOutput]:
        if any(failed):
            yield ""
            return
        ledger = Ledger(SPLIT, self._folder)
        path = os.path.join(self._folder, TABLE_FILE)
        # A query gives its rows no numbers, hence no order to keep.
        ordered = sorted(batches, key=lambda rows: (rows.place, *rows.batch.rows[:1]))
        self._write(ledger, [rows for rows in ordered if len(rows.batch)], path)
        yield beam.pvalue.TaggedOutput(PARTS, ledger.close())
        yield path

    def _write(self, ledger: Ledger, ordered: list[Rows], path: str) -> None:
        names = [*self._settings.texts, *self._settings.numbers]
        schema = self._schema()
        table = pa.Table.from_batches([rows.batch.columns for rows in ordered], schema)
        first = _first_of_each(table.column("item_id"))
        begin = 0
        for rows in ordered:
            of_batch = first[begin : begin + len(rows.batch)]
            begin += len(rows.batch)
            if self._refuse_repeats:
                ledger.refuse(rows, Rejected.of(rows.batch.rows[~of_batch], TWICE))
            else:
                ledger.read(int(of_batch.sum()))
        table = table.filter(pa.array(first)).combine_chunks()
        for place, batch in enumerate(table.to_batches(ENCODED_ROWS)):
            ledger.keep(SPLIT, batch, (place, 0))
        with create(path) as file, pa.ipc.new_file(file, _schema_of(schema, names)) as writer:
            writer.write_table(table.select(["item_id", *names]))

    def _schema(self) -> pa.Schema:
        settings = self._settings
        texts = [(name, pa.string()) for name in (*settings.texts, *settings.payload)]
        numbers = [(name, pa.float32()) for name in settings.numbers]
        return pa.schema([*texts, *numbers, ("item_id", pa.string())])


def _schema_of(schema: pa.Schema, names: list[str]) -> pa.Schema:
    return pa.schema([schema.field("item_id"), *(schema.field(name) for name in names)])


def _alone(batch: Batch) -> Batch:
    """The good rows without the refused, which are written already."""
    return Batch(batch.columns, batch.rows, Rejected.none())


def _chosen(batch: Batch, mask: np.ndarray) -> Batch:
    return Batch(batch.columns.filter(pa.array(mask)), batch.rows[mask], batch.rejected)


def _first_of_each(ids: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """[M] bool, true at the first row of each id."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first = np.zeros(len(codes), bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first


def _numpy(mask: pa.Array) -> np.ndarray:
    return mask.to_numpy(zero_copy_only=False)

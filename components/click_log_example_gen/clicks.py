"""The clicks: checked, joined to their items, split and written."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils import shared
from apache_beam.utils.windowed_value import WindowedValue

from components.click_log_example_gen import inputs
from components.click_log_example_gen.items import at_end
from components.click_log_example_gen.ledger import Ledger
from components.click_log_example_gen.rows import Rows
from components.click_log_example_gen.settings import Settings
from pebr_tf.config import Split
from pebr_tf.data import splits
from pebr_tf.data.click_log import check_clicks, check_clicks_and_items, join_items
from pebr_tf.data.tables import Batch

TABLE = "clicks"


class _Items:
    """The table of the items, which the threads of a worker share: all that is held of the data."""

    def __init__(self, path: str):
        with inputs.source_of(path, "auto").open() as file:
            self.table = pa.ipc.open_file(file).read_all().combine_chunks()


class GoodClicks:
    """Makes good clicks with the columns of their items of rows of a click log."""

    def __init__(self, settings: Settings, now: int):
        self._settings = settings
        self._now = now
        self._shared = shared.Shared()
        self._items: _Items | None = None

    def of(self, batch: Batch, path: str) -> Batch:
        """Good clicks; `path` has the table of the items."""
        if self._items is None:
            self._items = self._shared.acquire(lambda: _Items(path))
        settings = self._settings
        if settings.data.catalogue is not None:
            clicks = check_clicks(batch, settings.data, self._now)
        else:
            texts = (*settings.texts, *settings.payload)
            clicks, _ = check_clicks_and_items(
                batch, settings.data, self._now, texts, settings.numbers
            )
        return join_items(clicks, self._items.table)


class CountTimes(beam.DoFn):
    """`Rows` of a click log -> `TimeCounts` of the good clicks, one a bundle."""

    def __init__(self, settings: Settings, now: int):
        self._good = GoodClicks(settings, now)

    def start_bundle(self) -> None:
        self._counts = _no_times()

    def process(self, rows: Rows, path: str) -> tuple[()]:
        if path:
            clicks = self._good.of(rows.batch, path)
            time = clicks.columns.column("timestamp").to_numpy(zero_copy_only=False)
            self._counts = self._counts.and_also(splits.TimeCounts.of(time))
        return ()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield at_end(self._counts)


def merged(counts: Iterable[splits.TimeCounts]) -> splits.TimeCounts:
    """Of all clicks together."""
    return functools.reduce(splits.TimeCounts.and_also, counts, _no_times())


def cut_time(counts: splits.TimeCounts, split: Split) -> int:
    """The first second that is held out; any where there is no click."""
    return counts.held_out_from(split) if len(counts.clicks) else 0


def _no_times() -> splits.TimeCounts:
    return splits.TimeCounts.of(np.empty(0, np.int64))


class WriteClicks(beam.DoFn):
    """`Rows` of a click log -> Examples in the temporary folder, and a `Part` a bundle."""

    def __init__(self, settings: Settings, now: int, folder: str):
        self._settings = settings
        self._good = GoodClicks(settings, now)
        self._folder = folder

    def start_bundle(self) -> None:
        self._ledger = Ledger(TABLE, self._folder)

    def process(self, rows: Rows, path: str, begins: int | None = None) -> tuple[()]:
        if path:
            self._write(rows, path, begins)
        return ()

    def _write(self, rows: Rows, path: str, begins: int | None) -> None:
        clicks = self._good.of(rows.batch, path)
        self._ledger.read(len(rows.batch) + len(rows.batch.rejected))
        self._ledger.refuse(rows, clicks.rejected)
        if not len(clicks):
            return
        query, item, time = (
            clicks.columns.column(name) for name in ("query", "item_id", "timestamp")
        )
        seconds = time.to_numpy(zero_copy_only=False)
        places = splits.assign(self._settings.split, query, item, seconds, begins)
        # Logs are sorted by time or by query, and who trains wants neither.
        seed = [self._settings.split.seed, rows.place, int(clicks.rows[0])]
        order = np.random.default_rng(seed).permutation(len(clicks))
        for place, name in enumerate(splits.NAMES):
            chosen = clicks.columns.take(pa.array(order[places[order] == place]))
            self._ledger.keep(name, chosen, (rows.place, int(clicks.rows[0])))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield at_end(self._ledger.close())

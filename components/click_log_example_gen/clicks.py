"""Checks the clicks, joins them to their items, splits and writes them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils import shared
from apache_beam.utils.windowed_value import WindowedValue

from components.click_log_example_gen import inputs
from components.click_log_example_gen.bundle_writer import BundleWriter, Rows
from components.click_log_example_gen.items import at_end
from components.click_log_example_gen.settings import IngestSettings
from pebr_tf.config import Split
from pebr_tf.data import splits
from pebr_tf.data.click_log import check_clicks, check_clicks_and_items, join_items
from pebr_tf.data.tables import Batch

TABLE = "clicks"
QUERIES = "queries"


class _Items:
    """The table of items, shared by the threads of a worker."""

    def __init__(self, path: str):
        with inputs.source_of(path, "auto").open() as file:
            self.table = pa.ipc.open_file(file).read_all().combine_chunks()


class GoodClicks:
    """Turns rows of a click log into good clicks with the columns of their items."""

    def __init__(self, settings: IngestSettings, now: int):
        self._settings = settings
        self._now = now
        self._shared = shared.Shared()
        self._items: _Items | None = None

    def of(self, batch: Batch, path: str) -> Batch:
        """The good clicks of a batch; `path` is the table of items."""
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
    """`Rows` of a click log -> `TimeCounts` of the good clicks, one per bundle."""

    def __init__(self, settings: IngestSettings, now: int):
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
    """The counts of all bundles."""
    return functools.reduce(splits.TimeCounts.and_also, counts, _no_times())


def cut_time(counts: splits.TimeCounts, split: Split) -> int:
    """The first second that is held out; 0 if there is no click."""
    return counts.held_out_from(split) if len(counts.clicks) else 0


def _no_times() -> splits.TimeCounts:
    return splits.TimeCounts.of(np.empty(0, np.int64))


class WriteClicks(beam.DoFn):
    """`Rows` of a click log -> Examples in the temporary folder; one summary per bundle.

    The hashes of the queries that train go to QUERIES.
    """

    def __init__(self, settings: IngestSettings, now: int, folder: str):
        self._settings = settings
        self._good = GoodClicks(settings, now)
        self._folder = folder

    def start_bundle(self) -> None:
        self._writer = BundleWriter(TABLE, self._folder)
        self._queries: list[np.ndarray] = []

    def process(self, rows: Rows, path: str, begins: int | None = None) -> tuple[()]:
        if path:
            self._write(rows, path, begins)
        return ()

    def _write(self, rows: Rows, path: str, begins: int | None) -> None:
        clicks = self._good.of(rows.batch, path)
        self._writer.read(len(rows.batch) + len(rows.batch.rejected))
        self._writer.reject(rows, clicks.rejected)
        if not len(clicks):
            return
        query, item, time = (
            clicks.columns.column(name) for name in ("query", "item_id", "timestamp")
        )
        seconds = time.to_numpy(zero_copy_only=False)
        assigned = splits.assign(self._settings.split, query, item, seconds, begins)
        trained = query.filter(pa.array(assigned == splits.TRAIN))
        self._queries.append(splits.hashes(trained.unique()))
        # Logs are sorted by time or query; training needs a random order.
        seed = [self._settings.split.seed, rows.source_number, int(clicks.rows[0])]
        order = np.random.default_rng(seed).permutation(len(clicks))
        for number, name in enumerate(splits.NAMES):
            chosen = clicks.columns.take(pa.array(order[assigned[order] == number]))
            self._writer.keep(name, chosen, (rows.source_number, int(clicks.rows[0])))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield at_end(self._writer.close())
        yield beam.pvalue.TaggedOutput(QUERIES, at_end(different(self._queries)))


def different(parts: Iterable[np.ndarray]) -> np.ndarray:
    """[H] the different hashes of all parts."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))

"""Checks the clicks, splits, writes and counts them."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.utils import shared
from apache_beam.utils.windowed_value import WindowedValue

from components.click_log_example_gen import texts
from components.click_log_example_gen.bundle_writer import BundleWriter, Rows
from components.click_log_example_gen.items import at_end, read_items
from pebr_tf.config import Split
from pebr_tf.data import splits
from pebr_tf.data.ingest_settings import IngestSettings
from pebr_tf.data.item_places import ItemPlaces
from pebr_tf.data.sampled_pairs import SampledPairs
from pebr_tf.data.tables import Batch

TABLE = "clicks"
# Output with `SampledPairs`.
PAIRS = "pairs"
# Texts and pairs of a bundle that are kept before equal ones are merged, to bound the memory.
COUNTED_ROWS = 2_000_000


class GoodClicks:
    def __init__(self, settings: IngestSettings, now: int):
        self._settings = settings
        self._now = now
        self._shared = shared.Shared()
        self._known: ItemPlaces | None = None

    def of(self, batch: Batch, path: str) -> Batch:
        """The good clicks of a batch; `path` is the table of items."""
        if self._known is None and self._settings.data.catalogue is not None:
            # Once for all threads of a worker.
            self._known = self._shared.acquire(
                lambda: ItemPlaces(read_items(path, only_ids=True)["item_id"])
            )
        return self._settings.good_clicks(batch, self._now, self._known)


class CountTimes(beam.DoFn):
    """`Rows` of a click log -> `TimeCounts` of the good clicks."""

    def __init__(self, settings: IngestSettings, now: int):
        self._good = GoodClicks(settings, now)

    def process(self, rows: Rows, path: str) -> Iterator[splits.TimeCounts]:
        if path:
            clicks = self._good.of(rows.batch, path)
            time = clicks.columns.column("timestamp").to_numpy(zero_copy_only=False)
            yield splits.TimeCounts.of(time)


def merged(counts: Iterable[splits.TimeCounts]) -> splits.TimeCounts:
    none = splits.TimeCounts.of(np.empty(0, np.int64))
    return functools.reduce(splits.TimeCounts.and_also, counts, none)


def cut_time(counts: splits.TimeCounts, split: Split) -> int:
    """The first second that is held out; 0 if there is no click."""
    return counts.held_out_from(split) if len(counts.clicks) else 0


class WriteClicks(beam.DoFn):
    """`Rows` of a click log -> Examples in the temporary folder; one summary per bundle.

    The texts of training, counted, go to `texts.COUNTS`, samples of every split to `texts.SAMPLES`,
    the pairs of a sample of queries to PAIRS.
    """

    def __init__(self, settings: IngestSettings, now: int, folder: str):
        self._settings = settings
        self._good = GoodClicks(settings, now)
        self._folder = folder

    def start_bundle(self) -> None:
        self._writer = BundleWriter(TABLE, self._folder)
        self._counts: list[pa.Table] = []
        self._pairs: list[SampledPairs] = []
        self._samples: dict[str, pa.Table] = {}
        self._clicked: collections.Counter[str] = collections.Counter()
        self._queries: dict[str, set[str]] = {name: set() for name in splits.NAMES}

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
        self._pairs.append(SampledPairs.of(clicks.columns, assigned))
        # Logs are sorted by time or query; training needs a random order.
        generator = np.random.default_rng(
            [self._settings.split.seed, rows.source_number, int(clicks.rows[0])]
        )
        order = generator.permutation(len(clicks))
        for number, name in enumerate(splits.NAMES):
            chosen = clicks.columns.take(pa.array(order[assigned[order] == number]))
            self._writer.keep(name, chosen, (rows.source_number, int(clicks.rows[0])))
            self._sample(name, chosen, generator.random(len(chosen)))
            clicked = chosen.filter(pc.greater(chosen.column("clicks"), 0)).column("query")
            self._clicked[name] += len(clicked)
            if len(self._queries[name]) < splits.LEAST_QUERIES:
                few = clicked.unique().slice(0, splits.LEAST_QUERIES)
                self._queries[name].update(few.to_pylist())
            if number == splits.TRAIN:
                self._counts.append(texts.counted(chosen))
        # The first may be what was merged before.
        if sum(map(len, self._counts[1:])) > COUNTED_ROWS:
            self._counts = [texts.merged(self._counts)]
        if sum(map(len, self._pairs[1:])) > COUNTED_ROWS:
            self._pairs = [SampledPairs.merged(self._pairs)]

    def _sample(self, split: str, clicks: pa.RecordBatch, order: np.ndarray) -> None:
        table = pa.Table.from_batches([clicks]).append_column(texts.SAMPLE_ORDER, pa.array(order))
        both = [self._samples[split], table] if split in self._samples else [table]
        self._samples[split] = texts.sampled(both, self._settings.data.statistics_rows)

    def finish_bundle(self) -> Iterator[WindowedValue | beam.pvalue.TaggedOutput]:
        for part in texts.in_shards(texts.merged(self._counts)):
            yield beam.pvalue.TaggedOutput(texts.COUNTS, at_end(part))
        for split, table in self._samples.items():
            yield beam.pvalue.TaggedOutput(texts.SAMPLES, at_end(((split, 0), table)))
        yield beam.pvalue.TaggedOutput(PAIRS, at_end(SampledPairs.merged(self._pairs)))
        summary = self._writer.close()
        summary.clicked, summary.queries = dict(self._clicked), self._queries
        yield at_end(summary)

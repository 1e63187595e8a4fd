"""The Beam pipeline: first the items, then the clicks, then the texts of both.

    catalogue ---> check ---> each once ---> Examples
                                 |
                              their ids, read once per worker
                                 |
    click log ---> check ---> known? ---> split ---> Examples
                                            |
                     queries and items, counted; a sample
                                            |
                     join with the columns of the items ---> Examples

Batches stream from file to shard in one stage, so memory holds a few batches and the ids of the
items; only the few workers that join hold the columns. For a split by time the log is read twice,
first for the times alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import AsIter, AsSingleton

from components.click_log_example_gen import items, publish, texts
from components.click_log_example_gen.clicks import CountTimes, WriteClicks, cut_time, merged
from components.click_log_example_gen.reading import read_tables
from pebr_tf.data.ingest_settings import IngestSettings


@dataclass(frozen=True)
class Ingest:
    """The Beam graph of one run.

    Attributes:
      items: Files or BigQuery source of the catalogue; empty: the click log has its columns.
      folder: Folder of temporary files that every worker reaches. After the run,
        `publish.read_summaries` lists its files.
      now: Seconds since 1970; later clicks are rejected.
    """

    settings: IngestSettings
    clicks: Sequence[str]
    items: Sequence[str]
    folder: str
    now: int

    def build(self, pipeline: beam.Pipeline) -> None:
        table, summaries = self._build_items(pipeline)
        sides = [AsSingleton(table)]
        if self.settings.split.by == "time":
            sides.append(AsSingleton(self._build_cut_time(pipeline, table)))
        rows, failed = pipeline | "ReadClicks" >> self._read_clicks(after=table)
        writer = WriteClicks(self.settings, self.now, self.folder)
        written = rows | "WriteClicks" >> beam.ParDo(writer, *sides).with_outputs(
            texts.COUNTS, texts.SAMPLES, main="summaries"
        )
        catalogue = table | "UnclickedItems" >> beam.FlatMap(texts.of_catalogue)
        counts = (
            (catalogue, written[texts.COUNTS])
            | "AllCounts" >> beam.Flatten()
            | "MergeCounts" >> beam.CombinePerKey(texts.merged)
            | "WriteTexts" >> self._write_joined(texts.SPLIT, table)
        )
        samples = (
            written[texts.SAMPLES]
            | "Sample" >> beam.CombinePerKey(texts.sampled, self.settings.data.statistics_rows)
            | "WriteSamples" >> self._write_joined(texts.SAMPLES, table)
        )
        _ = (
            (*summaries, failed, written.summaries, counts, samples)
            | "AllSummaries" >> beam.Flatten()
            | "ListSummaries" >> beam.combiners.ToList()
            | "WriteSummaries" >> beam.Map(publish.write_summaries, self.folder)
        )

    def _write_joined(self, name: str, table: beam.PCollection) -> beam.PTransform:
        return beam.ParDo(texts.WriteJoined(name, self.folder), AsSingleton(table))

    def _build_items(
        self, pipeline: beam.Pipeline
    ) -> tuple[beam.PCollection, list[beam.PCollection]]:
        summaries = []
        if self.items:
            read = read_tables(
                items.SPLIT, self.items, self.settings.data.format, self.settings.item_columns
            )
            rows, failed = pipeline | "ReadItems" >> read
            check = beam.ParDo(items.CheckItems(self.settings, self.folder))
            good = rows | "CheckItems" >> check.with_outputs(items.SUMMARIES, main="good")
            found = good.good
            summaries += [failed, good[items.SUMMARIES]]
        else:
            rows, failed = pipeline | "ReadForItems" >> self._read_clicks()
            found = rows | "FindItems" >> beam.ParDo(items.FindItems(self.settings, self.now))
            summaries.append(failed)
        writer = items.WriteCatalogue(self.settings, self.folder, reject_repeats=bool(self.items))
        write = beam.ParDo(writer, AsIter(found), AsIter(failed))
        written = (
            pipeline
            | "Once" >> beam.Create([None])
            | "WriteItems" >> write.with_outputs(items.SUMMARIES, main="table")
        )
        return written.table, [*summaries, written[items.SUMMARIES]]

    def _build_cut_time(self, pipeline: beam.Pipeline, table: beam.PCollection) -> beam.PCollection:
        rows, _ = pipeline | "ReadTimes" >> self._read_clicks(after=table)
        count = beam.ParDo(CountTimes(self.settings, self.now), AsSingleton(table))
        return (
            rows
            | "CountTimes" >> count
            | "AllTimes" >> beam.CombineGlobally(merged)
            | "CutTime" >> beam.Map(cut_time, self.settings.split)
        )

    def _read_clicks(self, after: beam.PCollection | None = None) -> beam.PTransform:
        required, optional = self.settings.click_columns
        data = self.settings.data
        return read_tables(
            "clicks", self.clicks, data.format, required, optional, data.timestamp_column, after
        )

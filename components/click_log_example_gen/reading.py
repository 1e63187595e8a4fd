"""Reads files of any format, or BigQuery, into `Rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam

from components.click_log_example_gen import bigquery, inputs
from components.click_log_example_gen.bundle_writer import BundleSummary, Rows
from pebr_tf.data.tables import read_table
from pebr_tf.errors import UserError

FAILED = "failed"


class ReadFile(beam.DoFn):
    """(number, name) of a file -> its `Rows`; a `BundleSummary` with an error to FAILED.

    A file is the unit of work: in the middle of a file, a quoted line break looks like the end of a
    row.
    """

    def __init__(self, table: str, format: str, required: Sequence[str], optional: Sequence[str]):
        self._table = table
        self._format = format
        self._required = list(required)
        self._optional = list(optional)

    def process(
        self, file: tuple[int, str], after: str | None = None
    ) -> Iterator[Rows | beam.pvalue.TaggedOutput]:
        if after == "":
            return
        number, name = file
        source = inputs.source_of(name, self._format)
        try:
            for batch in read_table(source, self._required, self._optional):
                yield Rows(number, name, batch)
        except UserError as error:
            yield beam.pvalue.TaggedOutput(FAILED, BundleSummary(self._table, errors=[str(error)]))


class ReadTable(beam.PTransform):
    """All `Rows` of a table, and the failures: two collections.

    Args:
      after: One text that reading waits for. If it is empty, nothing is read.
    """

    def __init__(
        self,
        table: str,
        where: Sequence[str],
        format: str,
        required: Sequence[str],
        optional: Sequence[str] = (),
        after: beam.PCollection | None = None,
    ):
        super().__init__()
        self._where = list(where)
        self._reader = ReadFile(table, format, required, optional)
        self._columns = [*required, *optional]
        self._after = [] if after is None else [beam.pvalue.AsSingleton(after)]

    def expand(self, pipeline: beam.Pipeline) -> tuple[beam.PCollection, beam.PCollection]:
        if bigquery.is_source(self._where[0]):
            rows = pipeline | "BigQuery" >> bigquery.ReadRows(self._where[0], self._columns)
            return rows, pipeline | "Nothing" >> beam.Create([])
        read = (
            pipeline
            | "Files" >> beam.Create(list(enumerate(self._where)))
            # Otherwise a runner may read all files on the worker that made the list.
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(self._reader, *self._after).with_outputs(FAILED, main="rows")
        )
        return read.rows, read[FAILED]

"""Reads files of any format, or BigQuery, into `Rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam

from components.click_log_example_gen import bigquery, inputs
from components.click_log_example_gen.bundle_writer import BundleSummary, Rows
from pebr_tf.data.tables import read_table
from pebr_tf.errors import UserError

FAILED = "failed"


def read_file(
    file: tuple[int, str],
    after: str | None,
    table: str,
    format: str,
    required: Sequence[str],
    optional: Sequence[str],
    time: str | None,
) -> Iterator[Rows | beam.pvalue.TaggedOutput]:
    """(number, name) of a file -> its `Rows`; a `BundleSummary` with an error to FAILED.

    A file is the unit of work: in the middle of a file, a quoted line break looks like the end of a
    row.
    """
    if after == "":
        return
    number, name = file
    try:
        for batch in read_table(inputs.source_of(name, format), required, optional, time):
            yield Rows(number, name, batch)
    except UserError as error:
        yield beam.pvalue.TaggedOutput(FAILED, BundleSummary(table, errors=[str(error)]))


@beam.ptransform_fn
def read_tables(
    pipeline: beam.Pipeline,
    table: str,
    where: Sequence[str],
    format: str,
    required: Sequence[str],
    optional: Sequence[str] = (),
    time: str | None = None,
    after: beam.PCollection | None = None,
) -> tuple[beam.PCollection, beam.PCollection]:
    """All `Rows` of a table, and the failures: two collections.

    `time` is the column of times. `after` holds one text that reading waits for. If it is empty,
    nothing is read.
    """
    if bigquery.is_source(where[0]):
        columns = [*required, *optional]
        rows = pipeline | "BigQuery" >> bigquery.read_rows(where[0], columns)
        return rows, pipeline | "Nothing" >> beam.Create([])
    first = None if after is None else beam.pvalue.AsSingleton(after)
    read = beam.FlatMap(read_file, first, table, format, list(required), list(optional), time)
    found = (
        pipeline
        | "Files" >> beam.Create(list(enumerate(where)))
        # Otherwise a runner may read all files on the worker that made the list.
        | "Spread" >> beam.Reshuffle()
        | "Read" >> read.with_outputs(FAILED, main="rows")
    )
    return found.rows, found[FAILED]

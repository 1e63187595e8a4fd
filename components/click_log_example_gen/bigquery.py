"""Reads rows of BigQuery with Beam and batches them into columns.

A source is `bigquery://project.dataset.table` or `bigquery://SELECT ...`. Every column of the
configuration must exist: for a table without clicks or times, set their columns to null.
"""

from __future__ import annotations

import decimal
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.io.gcp.bigquery import ReadFromBigQuery

from components.click_log_example_gen.bundle_writer import Rows
from pebr_tf.data.tables import Batch, Rejected
from pebr_tf.errors import UserError

SCHEME = "bigquery://"
BATCH_ROWS = 65_536


def is_source(where: str) -> bool:
    """Whether a source is BigQuery rather than files."""
    return where.startswith(SCHEME)


def needs_span(source: str) -> bool:
    """Whether a query has a span parameter of TFX."""
    return "@span_" in source


def fingerprint() -> str:
    """A fingerprint that is different in every run."""
    return f"bigquery at {time.time_ns()}"


def reader(source: str, columns: Sequence[str]) -> ReadFromBigQuery:
    """The reader of Beam for a table or a query, with the Storage API."""
    what = source.removeprefix(SCHEME).strip()
    method = ReadFromBigQuery.Method.DIRECT_READ
    if any(character.isspace() for character in what):
        return ReadFromBigQuery(
            query=what, use_standard_sql=True, method=method, use_native_datetime=True
        )
    parts = what.strip("`").split(".")
    if len(parts) != 3 or not all(parts):
        raise UserError(
            f"{SCHEME} must be followed by project.dataset.table or by a query. Received: {source}."
        )
    project, dataset, table = parts
    return ReadFromBigQuery(
        table=f"{project}:{dataset}.{table}",
        selected_fields=list(columns),
        method=method,
        use_native_datetime=True,
    )


@beam.ptransform_fn
def read_rows(pipeline: beam.Pipeline, source: str, columns: Sequence[str]) -> beam.PCollection:
    return (
        pipeline
        | "Query" >> reader(source, columns)
        | "Batch" >> beam.BatchElements(min_batch_size=1_000, max_batch_size=BATCH_ROWS)
        | "Columns" >> beam.Map(in_columns, source, columns)
    )


def in_columns(records: Iterable[Mapping[str, Any]], source: str, columns: Sequence[str]) -> Rows:
    """Converts records of Beam's reader to `Rows`."""
    records = list(records)
    arrays = {name: _array([record.get(name) for record in records]) for name in columns}
    numbers = np.arange(1, len(records) + 1)
    batch = Batch(pa.RecordBatch.from_pydict(arrays), numbers, Rejected.none())
    return Rows(0, source, batch, numbered=False)


def _array(values: list[Any]) -> pa.Array:
    # A NUMERIC becomes text, which shows whether it is a whole number.
    return pa.array([str(v) if isinstance(v, decimal.Decimal) else v for v in values])

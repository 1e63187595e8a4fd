"""Writes the rows of a Beam bundle: shards of Examples, dead letters, and the counts of both.

Files have temporary names. A runner may try a bundle again, which then writes under new names; only
files that a `BundleSummary` lists are used.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import uuid
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import tensorflow as tf
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder

from pebr_tf.data.tables import Batch, Rejected

# Several shards for a large split, so that several workers can read it.
SHARD_ROWS = 1 << 19
# The fastest level: the default of 6 would take most of the time.
COMPRESSION = 1


@dataclass(frozen=True)
class Rows:
    """Some rows of one source.

    Attributes:
      source_number: Position of the source among those of its table, from 0.
      numbered: Whether row numbers mean something to a user; those of a BigQuery query do not.
    """

    source_number: int
    source: str
    batch: Batch
    numbered: bool = True


@dataclass(frozen=True)
class Shard:
    """A file of Examples; `order` is the source number and row number of its first row."""

    split: str
    path: str
    order: tuple[int, int]


@dataclass
class BundleSummary:
    """What happened to the rows of a bundle.

    Attributes:
      clicked: Rows with clicks, by split.
      queries: Queries with clicks, by split, at least `splits.LEAST_QUERIES` where there are more.
      letters: Files of the rejected rows, gzip.
      errors: Error messages that end the run. They are data because runners wrap exceptions.
    """

    table: str
    read: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    clicked: dict[str, int] = field(default_factory=dict)
    queries: dict[str, set[str]] = field(default_factory=dict)
    shards: list[Shard] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class BundleWriter:
    def __init__(self, table: str, folder: str):
        self._folder = folder
        self._summary = BundleSummary(table)
        self._kept: collections.Counter[str] = collections.Counter()
        self._reasons: collections.Counter[str] = collections.Counter()
        self._encoder = RecordBatchToExamplesEncoder()
        self._open: dict[str, tuple[Any, int]] = {}
        self._letters: list[BinaryIO] = []

    def read(self, count: int) -> None:
        self._summary.read += count

    def reject(self, rows: Rows, rejected: Rejected) -> None:
        if not len(rejected):
            return
        self._reasons.update(rejected.reasons.tolist())
        if not self._letters:
            path = self._new_path("letters.jsonl.gz")
            file = create(path)
            self._letters = [cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="wb")), file]
            self._summary.letters.append(path)
        numbers = rejected.rows.tolist() if rows.numbered else [None] * len(rejected)
        for number, reason in zip(numbers, rejected.reasons.tolist(), strict=True):
            letter = {"file": rows.source, "row": number, "reason": reason}
            self._letters[0].write(json.dumps(letter, ensure_ascii=False).encode() + b"\n")

    def keep(self, split: str, columns: pa.RecordBatch, order: tuple[int, int]) -> None:
        """Writes rows as Examples. Every column is a feature with one value per row."""
        if not columns.num_rows:
            return
        writer, written = self._open.get(split, (None, 0))
        if writer is None:
            path = self._new_path(f"{split}.gz")
            options = tf.io.TFRecordOptions("GZIP", compression_level=COMPRESSION)
            writer = tf.io.TFRecordWriter(path, options)
            self._summary.shards.append(Shard(split, path, order))
        self._open[split] = writer, written + columns.num_rows
        for example in self._encoder.encode(_features(columns)):
            writer.write(example)
        self._kept[split] += columns.num_rows
        if written + columns.num_rows >= SHARD_ROWS:
            writer.close()
            del self._open[split]

    def close(self) -> BundleSummary:
        for writer, _ in self._open.values():
            writer.close()
        for file in self._letters:
            file.close()
        self._summary.kept, self._summary.reasons = dict(self._kept), dict(self._reasons)
        return self._summary

    def _new_path(self, ending: str) -> str:
        return os.path.join(self._folder, f"{uuid.uuid4().hex}-{ending}")


def create(path: str) -> BinaryIO:
    """Opens a new file on any file system of Beam."""
    return cast(BinaryIO, FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED))


def _features(columns: pa.RecordBatch) -> pa.RecordBatch:
    offsets = pa.array(np.arange(columns.num_rows + 1, dtype=np.int32))
    lists = []
    for column in columns.columns:
        if pa.types.is_string(column.type):
            column = column.cast(pa.binary())
        lists.append(pa.ListArray.from_arrays(offsets, column))
    return pa.RecordBatch.from_arrays(lists, names=columns.schema.names)

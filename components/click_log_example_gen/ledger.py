"""What became of the rows of a bundle: counts, dead letters and shards under temporary names.

A bundle that a runner tries again writes under new names; only what a `Part` lists is used.
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

from components.click_log_example_gen.rows import Rows
from pebr_tf.data.tables import Rejected

# Small enough for several readers of a large split, large enough to be few.
SHARD_ROWS = 1 << 19
# The fastest: at the default level of 6, compression would take most of the time.
COMPRESSION = 1


@dataclass(frozen=True)
class Shard:
    """A file of Examples under its temporary name.

    Attributes:
      split: Where it belongs.
      path: Its temporary name.
      order: Source and row that it begins with.
    """

    split: str
    path: str
    order: tuple[int, int]


@dataclass
class Part:
    """What became of some rows.

    Attributes:
      table: "clicks" or "items".
      read: Rows read.
      kept: Rows written, by split.
      reasons: Rows refused, by reason.
      shards: Files of the kept.
      letters: Files of the refused, gzip.
      errors: Sentences that end the run; as data, for runners wrap exceptions.
    """

    table: str
    read: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    shards: list[Shard] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @classmethod
    def from_mapping(cls, mapping: dict[str, Any]) -> Part:
        """The part that `dataclasses.asdict` and JSON made the mapping of."""
        shards = [Shard(s["split"], s["path"], tuple(s["order"])) for s in mapping["shards"]]
        return cls(**{**mapping, "shards": shards})


class Ledger:
    """Writes and counts the rows of a bundle.

    Args:
      table: "clicks" or "items".
      folder: Of the temporary files.
    """

    def __init__(self, table: str, folder: str):
        self._folder = folder
        self._part = Part(table)
        self._kept: collections.Counter[str] = collections.Counter()
        self._reasons: collections.Counter[str] = collections.Counter()
        self._encoder = RecordBatchToExamplesEncoder()
        self._open: dict[str, tuple[Any, int]] = {}
        self._letters: list[BinaryIO] = []

    def read(self, count: int) -> None:
        """Counts rows that were read."""
        self._part.read += count

    def refuse(self, rows: Rows, rejected: Rejected) -> None:
        """Writes dead letters for rows of a source."""
        if not len(rejected):
            return
        self._reasons.update(rejected.reasons.tolist())
        if not self._letters:
            path = self._new_path("letters.jsonl.gz")
            file = create(path)
            self._letters = [cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="wb")), file]
            self._part.letters.append(path)
        numbers = rejected.rows.tolist() if rows.numbered else [None] * len(rejected)
        for number, reason in zip(numbers, rejected.reasons.tolist(), strict=True):
            letter = {"file": rows.source, "row": number, "reason": reason}
            self._letters[0].write(json.dumps(letter, ensure_ascii=False).encode() + b"\n")

    def keep(self, split: str, columns: pa.RecordBatch, order: tuple[int, int]) -> None:
        """Writes rows as Examples; every column is a feature of one value a row."""
        if not columns.num_rows:
            return
        writer, written = self._open.get(split, (None, 0))
        if writer is None:
            path = self._new_path(f"{split}.gz")
            options = tf.io.TFRecordOptions("GZIP", compression_level=COMPRESSION)
            writer = tf.io.TFRecordWriter(path, options)
            self._part.shards.append(Shard(split, path, order))
        self._open[split] = writer, written + columns.num_rows
        for example in self._encoder.encode(_features(columns)):
            writer.write(example)
        self._kept[split] += columns.num_rows
        if written + columns.num_rows >= SHARD_ROWS:
            writer.close()
            del self._open[split]

    def close(self) -> Part:
        """Ends all files; what became of the rows."""
        for writer, _ in self._open.values():
            writer.close()
        for file in self._letters:
            file.close()
        self._part.kept, self._part.reasons = dict(self._kept), dict(self._reasons)
        return self._part

    def _new_path(self, ending: str) -> str:
        return os.path.join(self._folder, f"{uuid.uuid4().hex}-{ending}")


def create(path: str) -> BinaryIO:
    """A new file of any file system that Beam knows."""
    return cast(BinaryIO, FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED))


def _features(columns: pa.RecordBatch) -> pa.RecordBatch:
    """The columns as lists of one value, as the encoder wants them."""
    offsets = pa.array(np.arange(columns.num_rows + 1, dtype=np.int32))
    lists = []
    for column in columns.columns:
        if pa.types.is_string(column.type):
            column = column.cast(pa.binary())
        lists.append(pa.ListArray.from_arrays(offsets, column))
    return pa.RecordBatch.from_arrays(lists, names=columns.schema.names)

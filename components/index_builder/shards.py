"""Shards of the embedded catalogue, which workers write and the assembly reads.

A worker may write a shard twice, or fail while writing it. Only shards whose names came out of Beam
count: they belong to committed bundles, each once.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from tfx.dsl.io import fileio

from pebr_tf import storage
from pebr_tf.release.payload import ID_COLUMN

# No column of a catalogue has this name.
_VECTOR = ""
_NAMES_FILE = "shards.json"


def record_batch(
    vectors: np.ndarray, columns: dict[str, np.ndarray], payload_columns: Sequence[str]
) -> pa.RecordBatch:
    """Vectors [B, n] and columns [B] of their items, as one batch of a shard."""
    flat = pa.array(vectors.astype(np.float32).ravel())
    arrays = {name: _text(columns[name]) for name in (ID_COLUMN, *payload_columns)}
    arrays[_VECTOR] = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


def write_shard(folder: str, batches: list[pa.RecordBatch]) -> str:
    name = f"{uuid.uuid4().hex}.arrow"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    with fileio.open(os.path.join(folder, name), "wb") as file:
        file.write(sink.getvalue().to_pybytes())
    return name


def write_names(names: Sequence[str], folder: str) -> None:
    """Writes the names of the shards that count, at once."""
    storage.write_bytes(f"{folder}/{_NAMES_FILE}", json.dumps(sorted(names)).encode())


def read_names(folder: str) -> list[str]:
    names: list[str] = json.loads(storage.read_bytes(f"{folder}/{_NAMES_FILE}"))
    return names


def read_items(folder: str, name: str) -> pa.Table:
    return _read(folder, name).drop([_VECTOR])


def read_vectors(folder: str, name: str) -> np.ndarray:
    """The vectors [M, n] of a shard."""
    column = _read(folder, name)[_VECTOR]
    flat = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate(flat).reshape(len(column), -1)


def _read(folder: str, name: str) -> pa.Table:
    with fileio.open(os.path.join(folder, name), "rb") as file:
        return pa.ipc.open_stream(file.read()).read_all()


def _text(column: np.ndarray) -> pa.Array:
    # A payload column is text, even if the towers read it as a number.
    if column.dtype.kind == "f":
        return pa.array(column).cast(pa.string())
    return pa.array(column, pa.binary()).cast(pa.string())

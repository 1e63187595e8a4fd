"""Shards of the embedded catalogue, which workers write and the assembly reads.

A worker may write a shard twice, or fail after writing it. Only shards whose names came out of Beam
count: they belong to committed bundles, each once.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from tfx.dsl.io import fileio

VECTOR = "vector"
ITEM_ID = "item_id"
_PAYLOAD = "payload."


def record_batch(
    vectors: np.ndarray, columns: dict[str, np.ndarray], payload_columns: Sequence[str]
) -> pa.RecordBatch:
    """Vectors [B, n] float32 and columns [B] of their items, as one batch of a shard."""
    count, dimension = vectors.shape
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(count * dimension))
    arrays = {VECTOR: pa.FixedSizeListArray.from_arrays(flat, dimension)}
    arrays[ITEM_ID] = _text(columns[ITEM_ID])
    for name in payload_columns:
        arrays[_PAYLOAD + name] = _text(columns[name])
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


def write_shard(folder: str, batches: list[pa.RecordBatch]) -> str:
    """Writes a shard atomically; returns its name."""
    name = f"{uuid.uuid4().hex}.arrow"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    write_file(os.path.join(folder, name), sink.getvalue().to_pybytes())
    return name


def read_items(folder: str, name: str, payload_columns: Sequence[str]) -> pa.Table:
    """`item_id` and the payload columns of a shard."""
    table = _read(folder, name)
    columns = {ITEM_ID: table[ITEM_ID]}
    columns |= {column: table[_PAYLOAD + column] for column in payload_columns}
    return pa.table(columns)


def read_vectors(folder: str, name: str) -> np.ndarray:
    """The vectors [M, n] of a shard."""
    column = _read(folder, name)[VECTOR]
    flat = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate(flat).reshape(len(column), -1)


def write_json(path: str, content: Any) -> None:
    """Writes a small JSON file atomically."""
    write_file(path, json.dumps(content).encode())


def read_json(path: str) -> Any:
    """Reads a JSON file."""
    with fileio.open(path, "rb") as file:
        return json.loads(file.read())


def write_file(path: str, content: bytes) -> None:
    """Writes a file atomically, local or remote."""
    # Two attempts at one bundle may write at the same time.
    temporary = f"{path}.{uuid.uuid4().hex}.part"
    with fileio.open(temporary, "wb") as file:
        file.write(content)
    fileio.rename(temporary, path, overwrite=True)


def _read(folder: str, name: str) -> pa.Table:
    with fileio.open(os.path.join(folder, name), "rb") as file:
        return pa.ipc.open_stream(file.read()).read_all()


def _text(column: np.ndarray) -> pa.Array:
    # A payload column is text, even if the towers read it as a number.
    if column.dtype.kind == "f":
        return pa.array(column).cast(pa.string())
    return pa.array(column, pa.binary()).cast(pa.string())

"""NumPy arrays and results as the messages of shard.proto, without a step of Python an item."""

from __future__ import annotations

from typing import Any

import numpy as np

from pebr_tf.retrieval import shard_pb2
from pebr_tf.retrieval.result import RangeResult, splits_of
from pebr_tf.retrieval.searcher import Searcher

SERVICE = "pebr_tf.retrieval.Shard"
# Name of a method -> its request and its response.
METHODS = {
    "Search": (shard_pb2.SearchRequest, shard_pb2.SearchResponse),
    "ExpectedCount": (shard_pb2.ExpectedCountRequest, shard_pb2.ExpectedCountResponse),
    "Describe": (shard_pb2.DescribeRequest, shard_pb2.DescribeResponse),
}


def pack(array: np.ndarray, dtype: str = "<f4") -> bytes:
    """The bytes of an array in a little-endian dtype."""
    return np.ascontiguousarray(array, dtype).tobytes()


def unpack(data: bytes, dtype: str = "<f4") -> np.ndarray:
    """The flat array of `pack`, writable and in the byte order of this machine."""
    packed = np.frombuffer(data, dtype)
    return packed.astype(packed.dtype.newbyteorder("="))


def pack_queries(queries: np.ndarray, thresholds: np.ndarray) -> Any:
    """Queries [B, n] and thresholds [B] as a message."""
    return shard_pb2.Queries(
        vectors=pack(queries), dimension=queries.shape[1], thresholds=pack(thresholds)
    )


def unpack_queries(message: Any) -> tuple[np.ndarray, np.ndarray]:
    """Queries [B, n] and thresholds [B] of a message from anywhere.

    Raises:
      ValueError: The bytes are not those of such arrays.
    """
    row = 4 * message.dimension
    if not row or len(message.vectors) % row or len(message.thresholds) % 4:
        raise ValueError(
            "queries must be rows of float32, as long as the dimension, with float32 thresholds. "
            f"Received: {len(message.vectors)} bytes of dimension {message.dimension}, "
            f"{len(message.thresholds)} bytes of thresholds."
        )
    queries = unpack(message.vectors).reshape(-1, message.dimension)
    return queries, unpack(message.thresholds)


def characters_of(dtype: np.dtype) -> int:
    """The width of a text dtype, at least 1; 0 of an integer one."""
    return max(1, dtype.itemsize // 4) if dtype.kind == "U" else 0


def id_dtype(characters: int) -> np.dtype:
    """The dtype whose `characters_of` is this."""
    return np.dtype(f"U{characters}") if characters else np.dtype(np.int64)


def pack_ids(ids: np.ndarray) -> Any:
    """Ids [M], int64 or text, as a message."""
    characters = characters_of(ids.dtype)
    if not characters:
        return shard_pb2.Ids(values=pack(ids, "<i8"))
    points = np.ascontiguousarray(ids, f"=U{characters}").view(np.uint32)
    largest = points.max(initial=0)
    unit = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    return shard_pb2.Ids(
        values=pack(points, f"<u{unit}"), characters=characters, character_bytes=unit
    )


def unpack_ids(message: Any) -> np.ndarray:
    """The ids [M] of a message."""
    if not message.characters:
        return unpack(message.values, "<i8")
    points = np.frombuffer(message.values, f"<u{message.character_bytes}").astype(np.uint32)
    return points.view(id_dtype(message.characters))


def pack_state(searcher: Searcher) -> Any:
    """What a client must know of an index."""
    return shard_pb2.State(
        items=len(searcher),
        dimension=searcher.dimension,
        id_characters=characters_of(searcher.id_dtype),
    )


def pack_result(result: RangeResult, searcher: Searcher) -> Any:
    """An answer, without the thresholds, which the client has."""
    return shard_pb2.SearchResponse(
        state=pack_state(searcher),
        counts=pack(result.counts, "<i8"),
        ids=pack_ids(result.item_ids),
        scores=pack(result.scores),
        expected_counts=pack(result.expected_counts),
        truncated=pack(result.truncated, "u1"),
        partial=result.partial,
    )


def unpack_result(message: Any, thresholds: np.ndarray) -> RangeResult:
    """The answer of a message to queries of these thresholds [B]."""
    return RangeResult(
        row_splits=splits_of(unpack(message.counts, "<i8")),
        item_ids=unpack_ids(message.ids),
        scores=unpack(message.scores),
        thresholds=thresholds,
        expected_counts=unpack(message.expected_counts),
        truncated=unpack(message.truncated, "u1").astype(bool),
        partial=message.partial,
    )

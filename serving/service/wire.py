"""Items in the wire format of protobuf, without a message object each.

A message object costs several microseconds an item, most of the time that a reply takes between its
search and its departure. The format is small: a field is its tag, the length of what follows where
that varies, and the bytes; a map is a repeated message of key and value. Messages that are
concatenated are merged, so that the fields written here stand beside those of a serialized message.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from serving.proto import retrieval_pb2

_LENGTH_DELIMITED, _FIXED_32 = 2, 5


def varint(number: int) -> bytes:
    """A whole number from 0 on, seven bits a byte, the low ones first."""
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _tag(message: type, field: str, kind: int) -> bytes:
    return varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | kind)


class _Prefixes(dict):
    """Length of the bytes of a value -> what stands before them; each is made once."""

    def __init__(self, make: Callable[[int], bytes]):
        super().__init__()
        self._make = make

    def __missing__(self, length: int) -> bytes:
        prefix = self[length] = self._make(length)
        return prefix


def _delimited(message: type, field: str) -> _Prefixes:
    tag = _tag(message, field, _LENGTH_DELIMITED)
    return _Prefixes(lambda length: tag + varint(length))


_ITEM_ID = _delimited(retrieval_pb2.Item, "item_id")
_SCORE = _tag(retrieval_pb2.Item, "score", _FIXED_32)
_ITEM = _delimited(retrieval_pb2.QueryResult, "items")
_RESULT = _delimited(retrieval_pb2.RetrieveResponse, "results")


# A release has a few columns; many releases come and go in the life of a server.
@functools.lru_cache(maxsize=256)
def _entry(column: str) -> _Prefixes:
    """Of the value of one entry of the map `fields`."""
    entry = retrieval_pb2.Item.FieldsEntry
    name = column.encode()
    key = _delimited(entry, "key")[len(name)] + name
    value = _delimited(entry, "value")
    fields = _delimited(retrieval_pb2.Item, "fields")

    def make(length: int) -> bytes:
        head = key + value[length]
        return fields[len(head) + length] + head

    return _Prefixes(make)


def item_fields(
    item_ids: Sequence[str], scores: np.ndarray, payload: dict[str, list[str | None]]
) -> list[bytes]:
    """Each of M items as the field `items` of a QueryResult.

    Args:
      item_ids: [M].
      scores: [M] float32.
      payload: Column -> [M] values; None is left out.
    """
    raw = np.asarray(scores, "<f4").tobytes()
    parts = [
        [_ITEM_ID[len(text)] + text for text in map(str.encode, item_ids)],
        [_SCORE + raw[place : place + 4] for place in range(0, len(raw), 4)],
        *(_column(_entry(name), values) for name, values in payload.items()),
    ]
    return [_ITEM[len(item)] + item for item in map(b"".join, zip(*parts, strict=True))]


def result_field(result: bytes) -> bytes:
    """A serialized QueryResult as the field `results` of a RetrieveResponse."""
    return _RESULT[len(result)] + result


def _column(prefixes: _Prefixes, values: list[str | None]) -> list[bytes]:
    if None in values:
        encoded = [None if value is None else value.encode() for value in values]
        return [b"" if text is None else prefixes[len(text)] + text for text in encoded]
    return [prefixes[len(text)] + text for text in map(str.encode, values)]

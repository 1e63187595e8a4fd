"""Items as the APIs write them, up to their scores; made once and kept for the next list.

Of an item only the score differs from list to list. Looking its columns up and rendering them each
time would be most of what the service does beside encoding and searching.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

import numpy as np
import orjson

from serving.payload import Payload
from serving.proto import retrieval_pb2

Form = Literal["json", "protobuf"]
# Of one choice of fields; about 250 bytes each. Beyond, all are let go.
KEPT_ITEMS = 200_000
# Choices of form and fields whose items are kept.
KEPT_CHOICES = 8
_SCORE = retrieval_pb2.Item.DESCRIPTOR.fields_by_name["score"].number
_ITEMS = retrieval_pb2.QueryResult.DESCRIPTOR.fields_by_name["items"].number
_LENGTH_DELIMITED, _FIXED_32 = 2, 5


class Heads:
    """The rendered items of one release; for one thread."""

    def __init__(self, payload: Payload):
        """Keeps nothing yet."""
        self._payload = payload
        self._kept: OrderedDict[tuple[Form, tuple[str, ...] | None], dict[str, bytes]]
        self._kept = OrderedDict()

    def of(self, item_ids: np.ndarray, form: Form, fields: tuple[str, ...] | None) -> list[bytes]:
        """What stands before the scores of items [M].

        Args:
          item_ids: [M].
          form: Of the API.
          fields: Columns of the payload; None: all of them.
        """
        texts = np.asarray(item_ids).astype(str).tolist()
        kept = self._choice(form, fields)
        missing = {text for text in texts if text not in kept}
        if len(kept) + len(missing) > KEPT_ITEMS:
            kept.clear()
            missing = set(texts)
        if missing:
            self._make(sorted(missing), form, fields, kept)
        return [kept[text] for text in texts]

    def _choice(self, form: Form, fields: tuple[str, ...] | None) -> dict[str, bytes]:
        kept = self._kept.setdefault((form, fields), {})
        self._kept.move_to_end((form, fields))
        if len(self._kept) > KEPT_CHOICES:
            self._kept.popitem(last=False)
        return kept

    def _make(
        self, texts: list[str], form: Form, fields: tuple[str, ...] | None, kept: dict[str, bytes]
    ) -> None:
        columns = self._payload.values(np.array(texts), fields)
        make = json_head if form == "json" else protobuf_head
        for place, text in enumerate(texts):
            known = {
                name: value
                for name, values in columns.items()
                if (value := values[place]) is not None
            }
            kept[text] = make(text, known)


def json_head(item_id: str, fields: dict[str, str]) -> bytes:
    """An item of the JSON answer, without its score and the closing brace."""
    return orjson.dumps({"item_id": item_id, "fields": fields})[:-1] + b',"score":'


def protobuf_head(item_id: str, fields: dict[str, str]) -> bytes:
    """An item as a field of a QueryResult, without the four bytes of its score."""
    item = retrieval_pb2.Item(item_id=item_id, fields=fields).SerializeToString(deterministic=True)
    item += varint(_SCORE << 3 | _FIXED_32)
    return varint(_ITEMS << 3 | _LENGTH_DELIMITED) + varint(len(item) + 4) + item


def varint(number: int) -> bytes:
    """A whole number from 0 on as protobuf writes it: seven bits a byte, the low ones first."""
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)

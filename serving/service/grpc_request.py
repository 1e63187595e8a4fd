"""Requests of the gRPC API from their bytes, with every fault named.

They are parsed by a twin of the proto in which texts are bytes: the same on the wire, but a text
that is not UTF-8 can be named, where protobuf would refuse the whole message, and write a line of
its own to standard error.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from serving.errors import InvalidArgument
from serving.proto import retrieval_pb2


@dataclass(frozen=True)
class Asked:
    """The fields of a RetrieveRequest, None where it has none.

    Attributes:
      queries: Texts.
      knob: Name and value of what shall end the lists.
      limit: Items of a query at most.
      fields: Columns of the payload.
    """

    queries: list[str]
    knob: dict[str, float]
    limit: int | None
    fields: list[str] | None


def _twins(*names: str) -> dict[str, type[Message]]:
    """Messages of the proto by name, with bytes for texts."""
    file = descriptor_pb2.FileDescriptorProto()
    retrieval_pb2.DESCRIPTOR.CopyToProto(file)
    kept = [message for message in file.message_type if message.name in names]
    for message in kept:
        for field in message.field:
            if field.type == field.TYPE_STRING:
                field.type = field.TYPE_BYTES
    twin = descriptor_pb2.FileDescriptorProto(
        name=file.name, package=file.package, syntax=file.syntax, message_type=kept
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(twin)
    factory = message_factory.MessageFactory(pool)
    found = {name: pool.FindMessageTypeByName(f"{file.package}.{name}") for name in names}
    return {name: factory.GetPrototype(message) for name, message in found.items()}


# Said of a message that ends too early, which the length tells as well, without a line in the log.
warnings.filterwarnings("ignore", "Unexpected end-group tag", RuntimeWarning)
_TWINS = _twins("RetrieveRequest", "Fields", "GetReleaseRequest")


def parse_retrieve(body: bytes) -> Asked:
    """A RetrieveRequest.

    Raises:
      InvalidArgument: Not one, or it has a field that this server does not know, or a text that is
        not UTF-8.
    """
    message = _parse("RetrieveRequest", body)
    knob = message.WhichOneof("cutoff")
    return Asked(
        queries=_texts("queries", message.queries),
        knob={} if knob is None else {knob: getattr(message, knob)},
        limit=message.limit if message.HasField("limit") else None,
        fields=_texts("fields", message.fields.names) if message.HasField("fields") else None,
    )


def parse_get_release(body: bytes) -> None:
    """Checks a GetReleaseRequest, which holds nothing.

    Raises:
      InvalidArgument: Not one, or it has a field that this server does not know.
    """
    _parse("GetReleaseRequest", body)


def _parse(name: str, body: bytes) -> Any:
    message = _TWINS[name]()
    try:
        whole = message.MergeFromString(body) == len(body)
    except DecodeError:
        whole = False
    if not whole:
        raise InvalidArgument(
            "request",
            f"request must be a {_TWINS[name].DESCRIPTOR.full_name}. "
            f"Received: {len(body)} bytes that are not one.",
        )
    # To pass over a field would answer another question than was asked.
    _refuse_unknown(message, "")
    return message


def _refuse_unknown(message: Message, path: str) -> None:
    for unknown in message.UnknownFields():
        number = f"{path}{unknown.field_number}"
        raise InvalidArgument(
            number,
            f"{message.DESCRIPTOR.full_name} must have only the fields that this server knows. "
            f"Received: field number {number}.",
        )
    for field, value in message.ListFields():
        if field.message_type is not None:
            _refuse_unknown(value, f"{path}{field.name}.")


def _texts(name: str, values: Any) -> list[str]:
    texts = []
    for place, value in enumerate(values):
        try:
            texts.append(value.decode())
        except UnicodeDecodeError as error:
            raise InvalidArgument(
                f"{name}[{place}]",
                f"{name}[{place}] must be UTF-8. Received: {error.reason} at byte {error.start}.",
            ) from None
    return texts

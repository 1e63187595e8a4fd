"""A reply in the form of each API: the bytes of a protobuf message, or of JSON."""

from __future__ import annotations

import math
from typing import Any

import orjson

from pebr_tf.metrics import STRATA
from serving.proto import retrieval_pb2
from serving.retriever import Retriever
from serving.service import wire
from serving.service.call import Reply, Stages


def reply_to_protobuf(reply: Reply, request_id: str, total: float) -> bytes:
    """The bytes of a RetrieveResponse.

    Args:
      reply: What was found.
      request_id: Of the call.
      total: Seconds since its arrival.
    """
    splits = reply.answer.items.row_splits.tolist()
    items = wire.item_fields(_item_ids(reply), reply.answer.items.scores, reply.payload)
    results = []
    for row, facts in enumerate(_facts(reply)):
        rest = retrieval_pb2.QueryResult(**facts).SerializeToString()
        results.append(wire.result_field(b"".join([*items[splits[row] : splits[row + 1]], rest])))
    rest = retrieval_pb2.RetrieveResponse(
        release=reply.version,
        knob=reply.answer.knob,
        value=reply.answer.value,
        timings=retrieval_pb2.Timings(**_timings(reply.stages, total)),
        request_id=request_id,
    )
    return b"".join([*results, rest.SerializeToString()])


def reply_to_json(reply: Reply, request_id: str, total: float) -> bytes:
    """The bytes of the JSON answer; see `serving.service.http_schema.RetrieveResponse`.

    Args:
      reply: What was found.
      request_id: Of the call.
      total: Seconds since its arrival.
    """
    splits = reply.answer.items.row_splits.tolist()
    items = [
        {"item_id": item_id, "score": score, "fields": fields}
        for item_id, score, fields in zip(
            _item_ids(reply), reply.answer.items.scores.tolist(), _fields(reply), strict=True
        )
    ]
    results = [
        {"items": items[splits[row] : splits[row + 1]], **facts}
        for row, facts in enumerate(_facts(reply))
    ]
    content = {
        "release": reply.version,
        "knob": reply.answer.knob,
        "value": reply.answer.value,
        "request_id": request_id,
        "results": results,
        "timings": {name: round(value, 3) for name, value in _timings(reply.stages, total).items()},
    }
    return orjson.dumps(content)


def release_facts(retriever: Retriever) -> dict[str, Any]:
    """What a release says about itself, by the names of the message `Release`."""
    manifest, calibration = retriever.release.manifest, retriever.calibration
    return {
        "version": manifest.version,
        "created": manifest.created,
        "items": len(retriever.searcher),
        "dimension": retriever.searcher.dimension,
        "default_knob": retriever.settings.default_knob,
        "default_value": retriever.settings.default_value,
        "floor": calibration.floor,
        "cap": calibration.cap,
        "fields": retriever.payload.columns,
    }


def _item_ids(reply: Reply) -> list[str]:
    ids = reply.answer.items.item_ids
    return ids.tolist() if ids.dtype.kind == "U" else ids.astype(str).tolist()


def _fields(reply: Reply) -> list[dict[str, str]]:
    """The columns of each item that have a value."""
    fields: list[dict[str, str]] = [{} for _ in range(len(reply.answer.items.scores))]
    for name, values in reply.payload.items():
        for row, value in zip(fields, values, strict=True):
            if value is not None:
                row[name] = value
    return fields


def _facts(reply: Reply) -> list[dict[str, Any]]:
    """All that is said of each query beside its items; None where there is nothing to say."""
    answer = reply.answer
    items = answer.items
    columns = zip(
        items.counts.tolist(),
        items.truncated.tolist(),
        items.thresholds.tolist(),
        answer.expected_recall.tolist(),
        answer.tau.tolist(),
        answer.alpha.tolist(),
        answer.beta.tolist(),
        answer.levels.tolist(),
        answer.strata.tolist(),
        strict=True,
    )
    return [
        {
            "count": count,
            "truncated": truncated,
            # Below every cosine: nothing ends the list but its length.
            "threshold": threshold if threshold >= -1 else None,
            "expected_recall": None if math.isnan(expected) else expected,
            "tau": tau,
            "alpha": alpha,
            "beta": beta,
            "level": level,
            "stratum": STRATA[stratum],
        }
        for count, truncated, threshold, expected, tau, alpha, beta, level, stratum in columns
    ]


def _timings(stages: Stages, total: float) -> dict[str, float]:
    """Milliseconds."""
    return {
        "queue": stages.queue * 1e3,
        "encode": stages.encode * 1e3,
        "search": stages.search * 1e3,
        "lookup": stages.lookup * 1e3,
        "total": total * 1e3,
    }

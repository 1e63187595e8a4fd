"""A reply in the form of each API: the bytes of a protobuf message, or of JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import orjson

from pebr_tf.metrics import STRATA
from serving.proto import retrieval_pb2
from serving.retriever import Retriever
from serving.service.call import Reply, Stages
from serving.service.heads import varint

_RESULTS = retrieval_pb2.RetrieveResponse.DESCRIPTOR.fields_by_name["results"].number
# Tag of a field whose length follows.
_RESULT = varint(_RESULTS << 3 | 2)


def reply_to_protobuf(reply: Reply, request_id: str, total: float) -> bytes:
    """The bytes of a RetrieveResponse.

    Args:
      reply: What was found.
      request_id: Of the call.
      total: Seconds since its arrival.
    """
    splits = reply.answer.items.row_splits.tolist()
    scores = np.asarray(reply.answer.items.scores, "<f4").tobytes()
    items = [head + scores[4 * place : 4 * place + 4] for place, head in enumerate(reply.heads)]
    results = []
    for row, facts in enumerate(_facts(reply)):
        rest = retrieval_pb2.QueryResult(**facts).SerializeToString()
        result = b"".join([*items[splits[row] : splits[row + 1]], rest])
        results += [_RESULT, varint(len(result)), result]
    rest = retrieval_pb2.RetrieveResponse(
        release=reply.version,
        knob=reply.answer.knob,
        value=reply.answer.value,
        timings=retrieval_pb2.Timings(**_timings(reply.stages, total)),
        request_id=request_id,
    )
    # Messages that are concatenated are merged.
    return b"".join([*results, rest.SerializeToString()])


def reply_to_json(reply: Reply, request_id: str, total: float) -> bytes:
    """The bytes of the JSON answer; see `serving.service.http_schema.RetrieveResponse`.

    Args:
      reply: What was found.
      request_id: Of the call.
      total: Seconds since its arrival.
    """
    splits = reply.answer.items.row_splits.tolist()
    scores = orjson.dumps(reply.answer.items.scores.tolist())[1:-1].split(b",")
    # Without an item there is one score too many, an empty one.
    items = [head + score + b"}" for head, score in zip(reply.heads, scores, strict=False)]
    results = [
        {"items": _json_list(items[splits[row] : splits[row + 1]]), **facts}
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
        "limit": calibration.limit,
        "fields": retriever.payload.columns,
    }


def _json_list(values: list[bytes]) -> orjson.Fragment:
    return orjson.Fragment(b"[" + b",".join(values) + b"]")


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

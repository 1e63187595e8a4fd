"""A response as JSON bytes or as a protobuf message, and the description of a release."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import orjson

from pebr_tf.metrics.strata import STRATA
from serving.proto import retrieval_pb2
from serving.retrieval import STAGES, RetrievalResponse
from serving.retriever import Retriever

Result = dict[str, Any]


def to_json(response: RetrievalResponse, request_id: str, total: float) -> bytes:
    """Returns the bytes of a `RetrieveResponseBody`.

    `total` is the number of seconds since the request arrived.
    """
    if "json" not in response.rendered:
        response.rendered["json"] = orjson.Fragment(orjson.dumps(list(_results(response))))
    timings = {name: round(value, 3) for name, value in _milliseconds(response, total).items()}
    return orjson.dumps(
        {
            "release": response.release,
            "knob": response.knob,
            "value": response.value,
            "request_id": request_id,
            "notes": response.notes,
            "results": response.rendered["json"],
            "timings": timings,
        }
    )


def to_message(
    response: RetrievalResponse, request_id: str, total: float
) -> retrieval_pb2.RetrieveResponse:
    """Returns the protobuf message; arguments as for `to_json`."""
    if "messages" not in response.rendered:
        response.rendered["messages"] = [
            retrieval_pb2.QueryResult(**result) for result in _results(response)
        ]
    return retrieval_pb2.RetrieveResponse(
        release=response.release,
        knob=response.knob,
        value=response.value,
        request_id=request_id,
        notes=response.notes,
        results=response.rendered["messages"],
        timings=_milliseconds(response, total),
    )


def describe_release(retriever: Retriever) -> dict[str, Any]:
    """Returns what a release accepts, by the names of the message `Release`."""
    manifest, calibration = retriever.release.manifest, retriever.calibration
    return {
        "version": manifest.version,
        "created": manifest.created,
        "items": len(retriever.searcher),
        "dimension": retriever.searcher.dimension,
        "default_knob": calibration.default_knob,
        "default_value": calibration.default_value,
        "floor": calibration.floor,
        "limit": calibration.limit,
        "fields": retriever.payload.columns,
    }


def _results(response: RetrievalResponse) -> Iterator[Result]:
    """Yields the result of each query, from columns: nothing is looked up item by item."""
    found, encoded = response.items, response.encoded
    columns = {
        "count": found.counts.tolist(),
        "truncated": found.truncated.tolist(),
        # A threshold below every cosine: only the length ends the list.
        "threshold": [each if each >= -1 else None for each in found.thresholds.tolist()],
        "expected_recall": [
            None if math.isnan(each) else each for each in response.expected_recall.tolist()
        ],
        **{name: getattr(encoded, name).tolist() for name in ("tau", "alpha", "beta", "level")},
        "stratum": [STRATA[each] for each in encoded.stratum.tolist()],
        "unfamiliar": encoded.unfamiliar.tolist(),
        "level_source": [response.level_source] * len(response),
    }
    items = _items(response)
    ends = itertools.pairwise(found.row_splits.tolist())
    for (begin, end), *values in zip(ends, *columns.values(), strict=True):
        yield {"items": items[begin:end], **dict(zip(columns, values, strict=True))}


def _items(response: RetrievalResponse) -> list[Result]:
    item_ids = response.items.item_ids.astype(str).tolist()
    scores = response.items.scores.tolist()
    return [
        {"item_id": item_id, "score": score, "fields": fields}
        for item_id, score, fields in zip(item_ids, scores, response.fields, strict=True)
    ]


def _milliseconds(response: RetrievalResponse, total: float) -> dict[str, float]:
    stages = {name: getattr(response.seconds, name) * 1e3 for name in STAGES}
    return {**stages, "total": total * 1e3}

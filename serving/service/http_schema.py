"""What the HTTP API takes and gives, as models: they check requests and are the OpenAPI document.

Types are checked here; sizes by `serving.service.limits`; the range of a knob by the release, whose
floor and limit decide it. The ranges here that no release exceeds are for the document.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pebr_tf.config.error import shown
from serving.errors import InvalidArgument
from serving.service.limits import LARGEST_WHOLE_NUMBER, LONGEST_DEADLINE_MILLISECONDS

KNOBS = ("recall", "budget", "top_k", "score")
Status = Literal[
    "INVALID_ARGUMENT",
    "UNAUTHENTICATED",
    "NOT_FOUND",
    "UNIMPLEMENTED",
    "RESOURCE_EXHAUSTED",
    "DEADLINE_EXCEEDED",
    "UNAVAILABLE",
    "INTERNAL",
]
# Beyond so many faults a body is no honest mistake, and listing them would take long.
_MANY_FAULTS = 100


def _range(description: str, **bounds: float) -> Any:
    """A field whose range the document states; it is checked elsewhere."""
    return Field(None, description=description, json_schema_extra=bounds)


class RetrieveRequest(BaseModel):
    """Queries and where their lists shall end; at most one of recall, budget, top_k and score."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "queries": ["black shoes"],
                    "recall": 0.9,
                    "limit": 10,
                    "fields": ["title"],
                }
            ]
        },
    )

    queries: list[str] = Field(
        fail_fast=True, description="Texts, none blank.", json_schema_extra={"minItems": 1}
    )
    recall: float | None = _range(
        "Share of the relevant to keep.", exclusiveMinimum=0, exclusiveMaximum=1
    )
    budget: float | None = _range("Items a query on average.", minimum=1)
    top_k: int | None = _range("Items a query.", minimum=1, maximum=LARGEST_WHOLE_NUMBER)
    score: float | None = _range("Least cosine.", minimum=-1, maximum=1)
    limit: int | None = _range(
        "Items of a query at most; absent: the release's limit.",
        minimum=1,
        maximum=LARGEST_WHOLE_NUMBER,
    )
    fields: list[str] | None = Field(
        None,
        fail_fast=True,
        description="Columns of the payload to answer with; absent: all of them.",
    )
    deadline_milliseconds: int | None = _range(
        "Time allowed; absent: the server's default.",
        minimum=1,
        maximum=LONGEST_DEADLINE_MILLISECONDS,
    )


def parse_request(body: bytes) -> RetrieveRequest:
    """A request from the bytes of its body.

    Raises:
      InvalidArgument: Not JSON, or a field of another type; names the first.
    """
    try:
        return RetrieveRequest.model_validate_json(body)
    except ValidationError as error:
        if error.error_count() > _MANY_FAULTS:
            raise InvalidArgument(
                "body", f"body must hold only {_known()}. Received: {error.error_count()} faults."
            ) from None
        raise _as_sentence(error.errors(include_url=False)[0]) from None


def _as_sentence(fault: dict[str, Any]) -> InvalidArgument:
    """What pydantic found, in the words of the service."""
    kind, place, received = fault["type"], fault["loc"], shown(fault["input"])
    if kind == "json_invalid":
        reason = fault["ctx"]["error"]
        return InvalidArgument("body", f"body must be JSON. Received: {reason}.")
    if not place:
        return InvalidArgument("body", f"body must be a JSON object. Received: {received}.")
    name = str(place[0])
    if kind == "extra_forbidden":
        near = shown(name)[1:-1]
        return InvalidArgument(
            name, f"{near} must be one of the known keys, {_known()}. Received: {received}."
        )
    if kind == "missing":
        return InvalidArgument(name, f"{name} must be given. Received: nothing.")
    path = name + "".join(f"[{part}]" for part in place[1:] if isinstance(part, int))
    nouns = {"queries": "a list of texts", "fields": "a list of texts"}
    nouns |= dict.fromkeys(("recall", "budget", "score"), "a number")
    required = "a text" if path != name else nouns.get(name, "a whole number")
    return InvalidArgument(path, f"{path} must be {required}. Received: {received}.")


def _known() -> str:
    return ", ".join(RetrieveRequest.model_fields)


_EXAMPLE = {
    "release": 20260101120000,
    "knob": "recall",
    "value": 0.9,
    "request_id": "5f2b8c0e9d3a4f6c8b1d7e2a90c4f613",
    "results": [
        {
            "items": [{"item_id": "i1836", "score": 0.77, "fields": {"title": "black shoes 43"}}],
            "count": 1,
            "truncated": False,
            "threshold": 0.71,
            "expected_recall": 0.9,
            "tau": 0.05,
            "alpha": 21.0,
            "beta": 1.4,
            "level": -2.6,
            "stratum": "tail",
        }
    ],
    "timings": {"queue": 0.1, "encode": 2.1, "search": 1.4, "lookup": 0.2, "total": 4.1},
}


class Item(BaseModel):
    """One item of a list."""

    item_id: str
    score: float = Field(description="Exact cosine.")
    fields: dict[str, str] = Field(
        description="Columns of the payload; one without a value is left out."
    )


class QueryResult(BaseModel):
    """The list of one query."""

    items: list[Item] = Field(description="Best first.")
    count: int = Field(description="Number of items.", ge=0)
    truncated: bool = Field(description="Whether the limit cut the list before the threshold did.")
    threshold: float | None = Field(
        description="Cosine where the list ends; null where every cosine passes."
    )
    expected_recall: float | None = Field(
        description="Share of the relevant that the list is expected to hold, if it is not "
        "truncated; null for top_k and score, which promise nothing."
    )
    tau: float = Field(description="The query's temperature.")
    alpha: float = Field(
        description="With beta, the law of the query's relevant items: Beta(alpha, beta) over "
        "(1 + cosine) / 2."
    )
    beta: float
    level: float = Field(
        description="Logarithm of the mean relevance over all items, from which the cut-off is "
        "counted."
    )
    stratum: Literal["head", "torso", "tail"] = Field(
        description="How often the query was seen in training."
    )


class Timings(BaseModel):
    """Milliseconds that a call spent in each stage; a batch of calls shares encode and search."""

    queue: float = Field(description="Waiting for a batch.")
    encode: float = Field(description="Texts to vectors and laws.")
    search: float = Field(description="Search to the thresholds.")
    lookup: float = Field(description="Payload of the items.")
    total: float = Field(description="From the arrival of the call to its answer.")


class RetrieveResponse(BaseModel):
    """The lists of a call, wholly from one release."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    release: int = Field(description="Version of the release.")
    knob: Literal["recall", "budget", "top_k", "score"] = Field(description="What ended the lists.")
    value: float = Field(description="Of the knob.")
    request_id: str = Field(
        description="The x-request-id of the call, or one that the server made; logs have it."
    )
    results: list[QueryResult] = Field(description="One for each query, in their order.")
    timings: Timings


class Release(BaseModel):
    """The release that answers now, and what it accepts."""

    version: int
    created: str = Field(description="ISO 8601, UTC.")
    items: int = Field(description="In the catalogue.")
    dimension: int = Field(description="Of the vectors.")
    default_knob: Literal["recall", "budget", "top_k", "score"]
    default_value: float
    floor: int = Field(description="Items of a query at least.")
    limit: int = Field(description="Items of a query at most.")
    fields: list[str] = Field(description="Columns of the payload.")


class Fault(BaseModel):
    """Why a call got no answer."""

    status: Status
    message: str = Field(description="One sentence: what is required, then what was received.")
    field: str | None = Field(description="The field that is at fault, as the caller wrote it.")
    request_id: str


class Refusal(BaseModel):
    """The answer to every call that failed."""

    error: Fault

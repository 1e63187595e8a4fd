"""The bodies of the HTTP API as pydantic models, which check requests and document the API.

The models check types, `serving.service.limits` checks sizes, and the release checks the ranges of
knobs. The ranges given here, which no release exceeds, are for the OpenAPI document only.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from pebr_tf.config import Serving
from pebr_tf.config.error import shown
from pebr_tf.config.retrieval import Knob
from serving.client.results import Item, Timings
from serving.errors import InvalidArgument
from serving.service.limits import LARGEST_WHOLE_NUMBER, LONGEST_DEADLINE_MILLISECONDS

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
# With more errors than this a body is not an honest mistake, and listing them would take long.
_MOST_ERRORS = 100


def _range(description: str, **bounds: JsonValue) -> Any:
    """Returns a field with a range for the document; the range is checked elsewhere."""
    return Field(None, description=description, json_schema_extra=bounds)


class RetrieveRequestBody(BaseModel):
    """Queries and what ends their lists; at most one of recall, share, budget, top_k, score."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"queries": ["black shoes"], "recall": 0.9, "limit": 10, "fields": ["title"]}
            ]
        },
    )

    queries: list[str] = Field(
        fail_fast=True, description="Texts, none blank.", json_schema_extra={"minItems": 1}
    )
    recall: float | None = _range(
        "Share of the relevant items to keep on average over queries.",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    )
    share: float | None = _range(
        "Share of each query's own relevant items to keep.", exclusiveMinimum=0, exclusiveMaximum=1
    )
    budget: float | None = _range("Average number of items per query.", minimum=1)
    top_k: int | None = _range("Items per query.", minimum=1, maximum=LARGEST_WHOLE_NUMBER)
    score: float | None = _range("Least cosine.", minimum=-1, maximum=1)
    limit: int | None = _range(
        "Most items per query; absent: the release's limit.",
        minimum=1,
        maximum=LARGEST_WHOLE_NUMBER,
    )
    fields: list[str] | None = Field(
        None,
        fail_fast=True,
        description="Columns of the payload to return; absent: all of them.",
    )
    deadline_milliseconds: int | None = _range(
        "Time allowed; absent: the server's default.",
        minimum=1,
        maximum=LONGEST_DEADLINE_MILLISECONDS,
    )


def request_schema(settings: Serving) -> dict[str, Any]:
    """Returns the JSON schema of a request, with the limits of the service."""
    schema = RetrieveRequestBody.model_json_schema()
    queries = schema["properties"]["queries"]
    queries["maxItems"] = settings.limits.queries_per_call
    queries["items"] |= {"minLength": 1, "maxLength": settings.limits.query_characters}
    return schema


def parse_request(body: bytes) -> RetrieveRequestBody:
    """Parses a request; an error names the first field with the wrong type."""
    try:
        return RetrieveRequestBody.model_validate_json(body)
    except ValidationError as error:
        if error.error_count() > _MOST_ERRORS:
            raise InvalidArgument(
                "body", f"body must hold only {_known()}. Received: {error.error_count()} errors."
            ) from None
        raise _invalid_argument(error.errors(include_url=False)[0]) from None


def _invalid_argument(error: ErrorDetails) -> InvalidArgument:
    kind, location, received = error["type"], error["loc"], shown(error["input"])
    if kind == "json_invalid":
        reason = error["ctx"]["error"]
        return InvalidArgument.must_be("body", "JSON", reason)
    if not location:
        return InvalidArgument.must_be("body", "a JSON object", received)
    name = str(location[0])
    if kind == "extra_forbidden":
        printable = shown(name)[1:-1]
        return InvalidArgument(
            name, f"{printable} must be one of the known keys, {_known()}. Received: {received}."
        )
    if kind == "missing":
        return InvalidArgument.must_be(name, "given", "nothing")
    path = name + "".join(f"[{part}]" for part in location[1:] if isinstance(part, int))
    nouns = {"queries": "a list of texts", "fields": "a list of texts"}
    nouns |= dict.fromkeys(("recall", "share", "budget", "score"), "a number")
    required = "a text" if path != name else nouns.get(name, "a whole number")
    return InvalidArgument.must_be(path, required, received)


def _known() -> str:
    return ", ".join(RetrieveRequestBody.model_fields)


class QueryResultBody(BaseModel):
    """The list of one query."""

    items: list[Item] = Field(description="Best first.")
    count: int = Field(description="Number of items.", ge=0)
    truncated: bool = Field(description="Whether the limit ended the list before the threshold.")
    threshold: float | None = Field(
        description="Cosine where the list ends; null where every cosine passes."
    )
    expected_recall: float | None = Field(
        description="Share of the relevant items that the list is expected to hold, unless it is "
        "truncated; null for top_k and score, which have no calibrated recall, and for unfamiliar "
        "queries."
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
    unfamiliar: bool = Field(description="Whether the model knows nothing of the query.")
    level_source: Literal["probe", "sample"] = Field(
        description="Where level, alpha and beta come from: a small search, or the items that the "
        "query model holds."
    )


class RetrieveResponseBody(BaseModel):
    """The lists of one request, all from one release."""

    release: int = Field(description="Version of the release.")
    knob: Knob = Field(description="What ended the lists.")
    value: float = Field(description="Value of the knob.")
    request_id: str = Field(
        description="The x-request-id of the request, or one that the server made; the log has it."
    )
    notes: list[str] = Field(
        description="What a caller should know about the value, one sentence each; mostly empty."
    )
    results: list[QueryResultBody] = Field(
        description="One per query, in the order of the queries."
    )
    timings: Timings


class ErrorBody(BaseModel):
    """Why a request failed."""

    status: Status
    message: str = Field(description="One sentence: what is required, then what was received.")
    field: str | None = Field(description="The invalid field, as the caller wrote it.")
    request_id: str


class ErrorResponse(BaseModel):
    """The response to every request that failed."""

    error: ErrorBody


def as_openapi_3_0(node: Any) -> Any:
    """Converts a document from OpenAPI 3.1 to 3.0, which the bundled Swagger UI reads.

    In 3.0 null is a property of a type, an exclusive bound a property of a bound, and a schema has
    one example.
    """
    if isinstance(node, list):
        return [as_openapi_3_0(each) for each in node]
    if not isinstance(node, dict):
        return node
    result = {name: as_openapi_3_0(each) for name, each in node.items()}
    kinds = result.get("anyOf")
    if isinstance(kinds, list) and {"type": "null"} in kinds:
        (kind,) = (each for each in kinds if each != {"type": "null"})
        del result["anyOf"]
        result = {**result, **kind, "nullable": True}
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(result.get(word), (int, float)) and not isinstance(result[word], bool):
            result[bound], result[word] = result[word], True
    if isinstance(result.get("examples"), list):
        result["example"] = result.pop("examples")[0]
    return result

"""Answers of the service, as plain values that do not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from serving.proto import retrieval_pb2


@dataclass(frozen=True)
class Item:
    """One item of a list.

    Attributes:
      item_id: Its id.
      score: Exact cosine to the query, -1 to 1.
      fields: Columns of the payload; one without a value is left out.
    """

    item_id: str
    score: float
    fields: Mapping[str, str]


@dataclass(frozen=True)
class QueryResult:
    """The answer to one query; iterates over its items.

    Attributes:
      query: Its text.
      items: Best first.
      threshold: Cosine where the list ends; None where every cosine passes.
      expected_recall: Share of the relevant that the list is expected to hold, if it is not
        truncated; None for top_k and score, which promise nothing.
      truncated: Whether limit or the limit cut the list before the threshold did.
      tau: Temperature of the query.
      alpha, beta: Its law of relevant items: Beta over (1 + cosine) / 2.
      level: Logarithm of the mean relevance over all items.
      stratum: head, torso or tail: how often the query was seen in training.
    """

    query: str
    items: tuple[Item, ...]
    threshold: float | None
    expected_recall: float | None
    truncated: bool
    tau: float
    alpha: float
    beta: float
    level: float
    stratum: str

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __bool__(self) -> bool:
        # An answer is an answer, also if it is empty.
        return True


@dataclass(frozen=True)
class Timings:
    """Milliseconds that the server spent on a call, by stage and in all."""

    queue: float
    encode: float
    search: float
    lookup: float
    total: float


@dataclass(frozen=True)
class Results:
    """The answers to the queries of one call, in their order, wholly from one release.

    Attributes:
      queries: The answers.
      release: Version of the release that gave them.
      knob: What ended the lists: recall, budget, top_k or score.
      value: Of the knob.
      timings: Where the server's time went.
      request_id: What the server's logs know the call by.
    """

    queries: tuple[QueryResult, ...]
    release: int
    knob: str
    value: float
    timings: Timings
    request_id: str

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[QueryResult]:
        return iter(self.queries)

    def __getitem__(self, index: int) -> QueryResult:
        return self.queries[index]


@dataclass(frozen=True)
class ReleaseFacts:
    """The release that answers now, and what it accepts.

    Attributes:
      version: Its number.
      created: When it was pushed, ISO 8601 in UTC.
      items: How many can be found.
      dimension: Of the vectors.
      default_knob, default_value: What ends lists where a call does not say.
      floor, limit: Items of a query at least and at most.
      fields: Columns of the payload.
    """

    version: int
    created: str
    items: int
    dimension: int
    default_knob: str
    default_value: float
    floor: int
    limit: int
    fields: tuple[str, ...]


def results_of(queries: tuple[str, ...], response: retrieval_pb2.RetrieveResponse) -> Results:
    """The answer to a call with these queries."""
    return Results(
        queries=tuple(map(_query_result, queries, response.results)),
        release=response.release,
        knob=response.knob,
        value=response.value,
        timings=Timings(
            **{name: getattr(response.timings, name) for name in Timings.__dataclass_fields__}
        ),
        request_id=response.request_id,
    )


def facts_of(response: retrieval_pb2.Release) -> ReleaseFacts:
    """What the server says of its release."""
    values = {name: getattr(response, name) for name in ReleaseFacts.__dataclass_fields__}
    return ReleaseFacts(**{**values, "fields": tuple(response.fields)})


def _query_result(query: str, result: retrieval_pb2.QueryResult) -> QueryResult:
    return QueryResult(
        query=query,
        items=tuple(Item(item.item_id, item.score, dict(item.fields)) for item in result.items),
        threshold=_optional(result, "threshold"),
        expected_recall=_optional(result, "expected_recall"),
        truncated=result.truncated,
        tau=result.tau,
        alpha=result.alpha,
        beta=result.beta,
        level=result.level,
        stratum=result.stratum,
    )


def _optional(result: retrieval_pb2.QueryResult, name: str) -> float | None:
    return getattr(result, name) if result.HasField(name) else None

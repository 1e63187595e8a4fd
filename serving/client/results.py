"""Results of the service, as immutable values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from serving.proto import retrieval_pb2


@dataclass(frozen=True)
class Item:
    """One item of a list.

    Attributes:
      item_id: Its id.
      score: Exact cosine to the query, from -1 to 1.
      fields: Columns of the payload; a column without a value is left out.
    """

    item_id: str
    score: float
    fields: Mapping[str, str]


@dataclass(frozen=True)
class QueryResult:
    """The list of one query; iterates over its items.

    Attributes:
      query: Its text.
      items: The items, best first.
      threshold: Cosine at which the list ends; None if every cosine passes.
      expected_recall: Share of the relevant items that the list is expected to hold, unless it is
        truncated; None for top_k and score, which have no calibrated recall, and for unfamiliar
        queries.
      truncated: Whether a limit ended the list before the threshold.
      tau: Temperature of the query.
      alpha, beta: The law of its relevant items: Beta over (1 + cosine) / 2.
      level: Logarithm of the mean relevance over all items.
      stratum: head, torso or tail: how often the query was seen in training.
      unfamiliar: Whether the model knows nothing of the query.
      level_source: Where level, alpha and beta come from: probe, a small search, or sample, the
        items that the query model holds.
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
    unfamiliar: bool
    level_source: str

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __bool__(self) -> bool:
        # An empty list is a valid result.
        return True

    @classmethod
    def from_message(cls, query: str, result: retrieval_pb2.QueryResult) -> QueryResult:
        values = {
            name: getattr(result, name) for name in cls.__dataclass_fields__ if name != "query"
        }
        values["items"] = tuple(
            Item(item.item_id, item.score, dict(item.fields)) for item in result.items
        )
        for name in ("threshold", "expected_recall"):
            values[name] = values[name] if result.HasField(name) else None
        return cls(query, **values)


@dataclass(frozen=True)
class Timings:
    """Milliseconds that the server spent on a request, by stage and in total."""

    queue: float
    encode: float
    search: float
    lookup: float
    total: float


@dataclass(frozen=True)
class Results:
    """The results of one call, one per query in the same order, all from one release.

    Attributes:
      knob: What ended the lists: recall, share, budget, top_k or score.
      value: Value of the knob.
      timings: Time that the server spent.
      request_id: Id of the request in the server's log.
      notes: What is to be known about the value, one sentence each; mostly empty.
    """

    queries: tuple[QueryResult, ...]
    release: int
    knob: str
    value: float
    timings: Timings
    request_id: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[QueryResult]:
        return iter(self.queries)

    def __getitem__(self, index: int) -> QueryResult:
        return self.queries[index]

    @classmethod
    def from_message(
        cls, queries: tuple[str, ...], response: retrieval_pb2.RetrieveResponse
    ) -> Results:
        """Converts the protobuf message, the response to `queries`."""
        timings = {name: getattr(response.timings, name) for name in Timings.__dataclass_fields__}
        return cls(
            queries=tuple(map(QueryResult.from_message, queries, response.results)),
            release=response.release,
            knob=response.knob,
            value=response.value,
            timings=Timings(**timings),
            request_id=response.request_id,
            notes=tuple(response.notes),
        )


@dataclass(frozen=True)
class ReleaseInfo:
    """The release that answers now, and what it accepts.

    Attributes:
      version: Version number.
      created: When it was pushed, ISO 8601 in UTC.
      items: Number of items in the catalogue.
      dimension: Dimension of the vectors.
      default_knob, default_value: What ends lists by default.
      floor, limit: Least and most items per query.
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

    @classmethod
    def from_message(cls, message: retrieval_pb2.Release) -> ReleaseInfo:
        values = {name: getattr(message, name) for name in cls.__dataclass_fields__}
        return cls(**{**values, "fields": tuple(message.fields)})

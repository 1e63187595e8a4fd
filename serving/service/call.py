"""One call of the service, and its answer, as both APIs see them."""

from __future__ import annotations

from dataclasses import dataclass

from serving.retriever import Answer
from serving.service.heads import Form


@dataclass(frozen=True)
class Call:
    """A call within the limits of the service; the release checks the rest.

    Attributes:
      queries: At least one text.
      knob: recall, budget, top_k or score; None for the release's default.
      value: Of the knob.
      limit: Items of a query at most; None: the release's limit.
      fields: Columns of the payload to answer with; None: all of them.
      deadline: `time.monotonic()` after which nobody waits for the answer.
      form: What the items are rendered for.
    """

    queries: tuple[str, ...]
    knob: str | None = None
    value: float | None = None
    limit: int | None = None
    fields: tuple[str, ...] | None = None
    deadline: float = float("inf")
    form: Form = "json"


@dataclass(frozen=True)
class Stages:
    """Seconds that a call spent in each stage; a batch of calls shares encode and search."""

    queue: float
    encode: float
    search: float
    lookup: float


@dataclass(frozen=True)
class Reply:
    """The answer to a call, wholly from one release.

    Attributes:
      version: Of the release.
      answer: What was found for each query.
      heads: All items in the form of the call, up to their scores, in the order of `answer.items`.
      stages: Where the time went.
    """

    version: int
    answer: Answer
    heads: list[bytes]
    stages: Stages

"""The request and the response that pass between the APIs and the retriever."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pebr_tf.metrics.strata import STRATA
from pebr_tf.retrieval import RangeResult
from pebr_tf.retrieval.encoded import EncodedQueries


@dataclass(frozen=True)
class RetrievalRequest:
    """Queries and what ends their lists.

    Attributes:
      queries: Texts, none blank.
      knob: recall, share, budget, top_k or score; None for the release's default.
      value: Value of the knob.
      limit: Most items per query; None for the release's limit.
      fields: Columns of the payload to return; None for all of them.
      deadline: `time.monotonic()` after which nobody waits for the response.
    """

    queries: tuple[str, ...]
    knob: str | None = None
    value: float | None = None
    limit: int | None = None
    fields: tuple[str, ...] | None = None
    deadline: float = math.inf


@dataclass
class StageSeconds:
    """Seconds that a request spent in each stage; requests of one batch share all but `queue`."""

    queue: float = 0.0
    encode: float = 0.0
    search: float = 0.0
    lookup: float = 0.0


STAGES = tuple(StageSeconds.__dataclass_fields__)


@dataclass(frozen=True)
class RetrievalResponse:
    """The lists of B queries, all from one release.

    Attributes:
      knob: What ended the lists: recall, share, budget, top_k or score.
      value: Value of the knob.
      items: Item ids, cosines, thresholds and `truncated`; see `RangeResult`.
      columns: Columns of the payload that were requested.
      fields: Column -> value for each item, in the order of `items`; a column without a value is
        left out. Responses share these dicts: do not change them.
      encoded: The queries as encoded, with the levels and laws of this search.
      level_source: Where levels and laws come from: "probe", a small search, or "sample", the items
        that the query model holds.
      expected_recall: [B] share of the query's relevant items that the list is expected to hold
        unless the limit truncated it: its law at the threshold; NaN for top_k and score, which have
        no calibrated recall, and for unfamiliar queries, which get `cutoff.unfamiliar_items`.
      notes: What a caller should know about the knob's value, one sentence each: it is out of
        range, returns much of the catalogue, or its recall has a wide interval.
      rendered: The results as each API sends them, kept for a response that is sent again.
    """

    queries: tuple[str, ...]
    knob: str
    value: float
    release: int
    items: RangeResult
    columns: tuple[str, ...]
    fields: list[dict[str, str]]
    encoded: EncodedQueries
    level_source: str
    expected_recall: np.ndarray
    notes: tuple[str, ...]
    seconds: StageSeconds
    rendered: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.queries)

    def stratum(self, index: int) -> str:
        return STRATA[self.encoded.stratum[index]]

    def rows(self, index: int, limit: int | None = None) -> list[dict[str, Any]]:
        """The items of one query, best first, at most `limit`: item_id, score and all columns."""
        begin, end = self.items.row_splits[index : index + 2].tolist()
        rows = slice(begin, end if limit is None else min(end, begin + limit))
        missing = dict.fromkeys(self.columns)
        return [
            {"item_id": item_id, "score": score, **missing, **fields}
            for item_id, score, fields in zip(
                self.items.item_ids[rows].tolist(),
                self.items.scores[rows].tolist(),
                self.fields[rows],
                strict=True,
            )
        ]

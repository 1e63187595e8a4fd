"""Answers queries from a release: encode, search to each query's threshold, look the items up."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.cutoff.knobs import CutoffRule, ReleaseKnobs
from pebr_tf.cutoff.policies import PolicyResult
from pebr_tf.metrics import STRATA
from pebr_tf.retrieval import RangeResult, Searcher, load_index
from pebr_tf.retrieval.encoded import EncodedQueries
from pebr_tf.retrieval.result import assemble
from serving.encoder import EmbeddedEncoder, Encoder
from serving.errors import InvalidArgument
from serving.knobs import check_knob
from serving.payload import Payload
from serving.release import Release, read_release


@dataclass(frozen=True)
class Answer:
    """The answer to B queries.

    Attributes:
      queries: Their texts.
      knob: What the lists were ended by: recall, budget, top_k or score.
      value: Of the knob.
      items: Ids, cosines, thresholds and `truncated`; see `RangeResult`.
      levels: [B] float32.
      tau, alpha, beta: [B] float32, the temperatures and the Beta laws of the queries.
      strata: [B] int64 places in `pebr_tf.metrics.STRATA`.
      expected_recall: [B] share of the relevant that the list is expected to hold, if the limit did
        not cut it; NaN for top_k and score, which promise nothing.
      payload: The catalogue of the release.
    """

    queries: tuple[str, ...]
    knob: str
    value: float
    items: RangeResult
    levels: np.ndarray
    tau: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    strata: np.ndarray
    expected_recall: np.ndarray
    payload: Payload

    def __len__(self) -> int:
        return len(self.queries)

    def stratum(self, index: int) -> str:
        """Name of the stratum of one query."""
        return STRATA[self.strata[index]]

    def rows(self, index: int, limit: int | None = None) -> list[dict[str, Any]]:
        """The items of one query, best first, `limit` at most: item_id, score and the payload."""
        ids, scores = (values[:limit] for values in self.items.row(index))
        return [
            {"item_id": item_id, "score": score, **columns}
            for item_id, score, columns in zip(
                ids.tolist(), scores.tolist(), self.payload.rows(ids), strict=True
            )
        ]


@dataclass(frozen=True)
class Wish:
    """Queries and where their lists shall end, as one release understands it; see `Retriever.wish`.

    Attributes:
      queries: Texts that are not blank.
      knob: recall, budget, top_k or score.
      value: Of the knob.
      rule: The policy and its cut-offs.
      limit: Items of a query at most.
    """

    queries: tuple[str, ...]
    knob: str
    value: float
    rule: CutoffRule
    limit: int


@dataclass(frozen=True)
class Batch:
    """The answers to several wishes, found together.

    Attributes:
      answers: One for each wish.
      items: Those of all answers, in their order.
      encode_seconds: Spent on encoding.
      search_seconds: Spent on the search.
    """

    answers: list[Answer]
    items: RangeResult
    encode_seconds: float
    search_seconds: float


class Retriever:
    """A loaded release. It holds no state of a request: any number of threads may ask at once."""

    def __init__(
        self,
        release: Release,
        encoder: Encoder,
        searcher: Searcher,
        payload: Payload,
        calibration: Calibration,
        settings: Cutoff,
    ):
        """Takes the loaded parts; see `load`."""
        self.release, self.encoder, self.searcher = release, encoder, searcher
        self.payload, self.calibration, self.settings = payload, calibration, settings
        self.knobs = ReleaseKnobs(calibration, settings)

    @classmethod
    def load(
        cls, directory: Path, verify: bool = True, encoder: Encoder | None = None
    ) -> Retriever:
        """Loads a release.

        Args:
          directory: The folder of one version.
          verify: Compare checksums, and try the index on its own queries.
          encoder: What encodes queries; None: the release's query model, in this process.

        Raises:
          UserError: What `read_release` and `load_index` refuse.
        """
        release = read_release(directory, verify)
        return cls(
            release=release,
            encoder=encoder or EmbeddedEncoder(release.path("query_model")),
            searcher=load_index(release.path("index"), verify),
            payload=Payload.load(release.path("payload.parquet")),
            calibration=Calibration.load(release.directory),
            settings=release.config().cutoff,
        )

    def retrieve(
        self,
        queries: Sequence[str],
        knob: str | None = None,
        value: float | None = None,
        limit: int | None = None,
    ) -> Answer:
        """The items of each query.

        Args:
          queries: Texts that are not blank.
          knob: "recall", the share of the relevant to keep; "budget", items a query on average;
            "top_k", items a query; "score", the least cosine; None for the release's default.
          value: Of the knob.
          limit: Items per query at most, no more than the release's limit; None: the release's
            limit.

        Raises:
          InvalidArgument: A blank query, an unknown knob, or a number out of range.
        """
        return self.answer([self.wish(queries, knob, value, limit)]).answers[0]

    def wish(
        self,
        queries: Sequence[str],
        knob: str | None = None,
        value: float | None = None,
        limit: int | None = None,
    ) -> Wish:
        """Checks what `retrieve` takes, for `answer`; raises what it raises."""
        for query in queries:
            if not isinstance(query, str) or not query.strip():
                raise InvalidArgument(
                    "queries", f"query must be a text that is not blank. Received: {query!r}."
                )
        limit = self._limit(limit)
        knob, value = self._knob(knob, value)
        return Wish(tuple(queries), knob, value, self.knobs.rule(knob, value), limit)

    def answer(self, wishes: Sequence[Wish], deadline: float = math.inf) -> Batch:
        """Answers several wishes at the price of one encoding and one search a policy.

        Args:
          wishes: Of this retriever.
          deadline: For the encoder, on the clock of `time.monotonic`.
        """
        begin = time.perf_counter()
        encoded = self.encoder.encode([text for wish in wishes for text in wish.queries], deadline)
        encoded_at = time.perf_counter()
        sizes = [len(wish.queries) for wish in wishes]
        owner = np.repeat(np.arange(len(wishes)), sizes)
        cutoffs = np.stack([wish.rule.cutoffs for wish in wishes])[owner, encoded.stratum]
        expected = np.stack([wish.rule.expected_recall for wish in wishes])[owner, encoded.stratum]
        found = self._search(wishes, owner, encoded, cutoffs)
        searched_at = time.perf_counter()
        answers, end = [], 0
        for wish, size in zip(wishes, sizes, strict=True):
            rows = slice(end, end := end + size)
            answers.append(
                Answer(
                    queries=wish.queries,
                    knob=wish.knob,
                    value=wish.value,
                    items=found.items.between(rows.start, rows.stop),
                    levels=found.levels[rows],
                    tau=encoded.tau[rows],
                    alpha=encoded.alpha[rows],
                    beta=encoded.beta[rows],
                    strata=encoded.stratum[rows],
                    expected_recall=expected[rows],
                    payload=self.payload,
                )
            )
        return Batch(answers, found.items, encoded_at - begin, searched_at - encoded_at)

    def _search(
        self,
        wishes: Sequence[Wish],
        owner: np.ndarray,
        encoded: EncodedQueries,
        cutoffs: np.ndarray,
    ) -> PolicyResult:
        """Searches for the queries [B] of wishes; `owner` [B] is the wish that each is of."""
        limits = np.array([wish.limit for wish in wishes])[owner]
        policies = {wish.rule.policy for wish in wishes}
        if len(policies) == 1:
            return policies.pop().search(self.searcher, encoded, cutoffs, limits)
        levels, parts = np.empty_like(encoded.level), []
        for policy in policies:
            mine = np.array([wish.rule.policy == policy for wish in wishes])[owner]
            rows = np.flatnonzero(mine)
            found = policy.search(self.searcher, encoded.take(rows), cutoffs[rows], limits[rows])
            levels[rows] = found.levels
            parts.append((rows, found.items))
        return PolicyResult(assemble(parts), levels)

    def _knob(self, knob: str | None, value: float | None) -> tuple[str, float]:
        if knob is None:
            if value is not None:
                raise InvalidArgument(
                    "value", f"value requires a knob. Received: {value!r} without one."
                )
            return self.settings.default_knob, self.settings.default_value
        return knob, check_knob(knob, value, self.calibration.floor, self.calibration.limit)

    def _limit(self, limit: int | None) -> int:
        """The caller's limit, or the release's where there is none."""
        most = self.calibration.limit
        if limit is None:
            return most
        whole = isinstance(limit, int) and not isinstance(limit, bool)
        if not whole or not 1 <= limit <= most:
            raise InvalidArgument(
                "limit", f"limit must be a whole number from 1 to {most}. Received: {limit!r}."
            )
        return limit

"""Answers queries from a release: encode, search to each query's threshold, look the items up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.errors import UserError
from pebr_tf.metrics import STRATA
from pebr_tf.retrieval import RangeResult, Searcher, load_index
from serving import ending
from serving.encoder import EmbeddedEncoder
from serving.knobs import check_knob, cut_of
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
      strata: [B] int64 places in `pebr_tf.metrics.STRATA`.
      expected_recall: [B] share of the relevant that the list is expected to hold, if the cap did
        not cut it; NaN for top_k and score, which promise nothing.
      payload: The catalogue of the release.
    """

    queries: tuple[str, ...]
    knob: str
    value: float
    items: RangeResult
    levels: np.ndarray
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


class Retriever:
    """A loaded release. It holds no state of a request: any number of threads may ask at once."""

    def __init__(
        self,
        release: Release,
        encoder: EmbeddedEncoder,
        searcher: Searcher,
        payload: Payload,
        calibration: Calibration,
        settings: Cutoff,
    ):
        """Takes the loaded parts; see `load`."""
        self.release, self.encoder, self.searcher = release, encoder, searcher
        self.payload, self.calibration, self.settings = payload, calibration, settings
        self._ending = ending.Ending(
            temper=calibration.temper,
            family=calibration.family,
            level_source=settings.level_source,
            probe_size=settings.probe_size,
            floor=calibration.floor,
        )

    @classmethod
    def load(cls, directory: Path, verify: bool = True) -> Retriever:
        """Loads a release.

        Args:
          directory: The folder of one version.
          verify: Compare checksums, and try the index on its own queries.

        Raises:
          UserError: What `read_release` and `load_index` refuse.
        """
        release = read_release(directory, verify)
        cutoff = release.path("cutoff.json").read_text(encoding="utf-8")
        return cls(
            release=release,
            encoder=EmbeddedEncoder(release.path("query_model")),
            searcher=load_index(release.path("index"), verify),
            payload=Payload.load(release.path("payload.parquet")),
            calibration=Calibration.from_json(cutoff),
            settings=release.config().cutoff,
        )

    def retrieve(
        self,
        queries: Sequence[str],
        knob: str | None = None,
        value: float | None = None,
        max_results: int | None = None,
    ) -> Answer:
        """The items of each query.

        Args:
          queries: Texts that are not blank.
          knob: "recall", the share of the relevant to keep; "budget", items a query on average;
            "top_k", items a query; "score", the least cosine; None for the release's default.
          value: Of the knob.
          max_results: Items of a query at most, no more than the cap; None: the cap.

        Raises:
          UserError: A blank query, an unknown knob, or a number out of range.
        """
        for query in queries:
            if not isinstance(query, str) or not query.strip():
                raise UserError(f"query must be a text that is not blank. Received: {query!r}.")
        limit = self._limit(max_results)
        knob, value = self._knob(knob, value)
        encoded = self.encoder.encode(queries)
        policy, by_stratum = cut_of(self.calibration, knob, value)
        cutoffs = by_stratum[encoded.stratum]
        found = ending.search(self.searcher, encoded, policy, cutoffs, self._ending, limit)
        return Answer(
            queries=tuple(queries),
            knob=knob,
            value=value,
            items=found.items,
            levels=found.levels,
            strata=encoded.stratum,
            expected_recall=self._expected_recall(knob, value, cutoffs, encoded.stratum),
            payload=self.payload,
        )

    def _knob(self, knob: str | None, value: float | None) -> tuple[str, float]:
        if knob is None:
            if value is not None:
                raise UserError(f"value requires a knob. Received: {value!r} without one.")
            return self.settings.default_knob, self.settings.default_value
        return knob, check_knob(knob, value, self.calibration.floor, self.calibration.cap)

    def _expected_recall(
        self, knob: str, value: float, cutoffs: np.ndarray, strata: np.ndarray
    ) -> np.ndarray:
        if knob == "recall":
            return self.calibration.promised(knob, value, strata)
        if knob == "budget":
            return self.calibration.expected_recall(cutoffs, strata)
        return np.full(len(strata), np.nan)

    def _limit(self, max_results: int | None) -> int:
        cap = self.calibration.cap
        if max_results is None:
            return cap
        whole = isinstance(max_results, int) and not isinstance(max_results, bool)
        if not whole or not 1 <= max_results <= cap:
            raise UserError(
                f"max_results must be a whole number from 1 to {cap}. Received: {max_results!r}."
            )
        return max_results

"""Why the list of a query ends where it ends, as data for one page.

A page that has it needs no request while a reader turns the knob: every value of a fine grid stands
there with the length of the list that the service would answer with, found by the same search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebr_tf.cutoff.calibration import CALIBRATED_KNOBS
from pebr_tf.metrics import STRATA
from pebr_tf.retrieval.encoded import EncodedQueries
from serving.retrieval import RetrievalRequest, RetrievalResponse
from serving.retriever import Retriever

BINS = 40
# Steps of the knobs that count items: so many for each tenfold.
STEPS_PER_DECADE = 15


def explain(retriever: Retriever, query: str, limit: int, knob: str = "recall") -> dict[str, Any]:
    """All that the page draws for a query; plain numbers, texts, lists and dicts.

        query, stratum, release, catalogue (its number of items), floor, limit, family, columns
        tau, alpha, beta, background_alpha, background_beta, level
        default     {knob, value} of the release
        knob        the one that `stops` are of, and `policy`, what it ends lists by
        items       [{item_id, score, fields}] the best, `limit` at most
        stops       [{value, cutoff, count, truncated, threshold, level, expected_recall, missed}],
                    from the shortest list to the longest
        background  {edges [n + 1], counts [n]} of the cosines of the index's random sample

    The list at a stop is the first `count` of `items` that are not `missed`: places of items that
    the approximate search of that list did not find. `threshold` is None where ranks end the list,
    `expected_recall` where nothing is promised.

    Args:
      retriever: Of the release.
      query: A text that is not blank.
      limit: Items at most, from 1 to the limit.
      knob: recall, budget, top_k or score.

    Raises:
      UserError: As `Retriever.retrieve`.
    """
    calibration, settings = retriever.calibration, retriever.settings
    values = stop_values(retriever, knob)
    retriever.check(RetrievalRequest((query,), knob, values[0], limit))
    requests = [RetrievalRequest((query,), knob, value, fields=()) for value in values]
    encoded = retriever.encoder.encode([query])
    answers = _knowing(retriever, encoded).answer(requests)
    best = retriever.searcher.search(encoded.embedding, top_k=limit, limit=limit)
    known = _Known(best.item_ids, best.scores, answers, limit)
    return {
        "query": query,
        "stratum": STRATA[encoded.stratum[0]],
        "release": retriever.release.version,
        "catalogue": len(retriever.searcher),
        "floor": calibration.floor,
        "limit": calibration.limit,
        "family": calibration.family,
        "columns": retriever.payload.columns,
        **{
            name: _number(getattr(encoded, name)[0])
            for name in ("tau", "alpha", "beta", "background_alpha", "background_beta")
        },
        "level": _number(answers[-1].levels[0]),
        "default": {"knob": settings.default_knob, "value": settings.default_value},
        "knob": knob,
        "policy": calibration.policy if knob in CALIBRATED_KNOBS else knob,
        "items": known.rows(retriever),
        "stops": [
            {
                "value": answer.value,
                "cutoff": float(retriever.knobs.rule(knob, answer.value).cutoffs[answer.strata[0]]),
                "count": int(answer.items.counts[0]),
                "truncated": bool(answer.items.truncated[0]),
                "threshold": _cosine(answer.items.thresholds[0]),
                "level": _number(answer.levels[0]),
                "expected_recall": _number(answer.expected_recall[0]),
                "missed": known.missed_by(answer),
            }
            for answer in answers
        ],
        "background": histogram(retriever.searcher.background @ encoded.embedding[0]),
    }


def stop_values(retriever: Retriever, knob: str) -> list[float]:
    """The grid of a knob, from the shortest list to the longest, with the release's default."""
    calibration, settings = retriever.calibration, retriever.settings
    if knob == "recall":
        grid = [percent / 100 for percent in range(1, 100)]
    elif knob == "score":
        grid = [percent / 100 for percent in (*range(-100, 0, 10), *range(0, 101))]
    else:
        least, most = max(calibration.floor, 1), calibration.limit
        steps = 1 + math.ceil(STEPS_PER_DECADE * math.log10(most / least))
        grid = np.geomspace(least, most, steps).round().tolist()
    if knob == settings.default_knob:
        grid.append(settings.default_value)
    # A high score is a short list.
    return sorted({float(value) for value in grid}, reverse=knob == "score")


def histogram(cosines: np.ndarray) -> dict[str, list[float]]:
    """How many of some cosines lie in each of a few bins from the least to the greatest."""
    counts, edges = np.histogram(cosines, BINS) if len(cosines) else ([], [])
    return {"edges": [float(edge) for edge in edges], "counts": [int(count) for count in counts]}


def _knowing(retriever: Retriever, encoded: EncodedQueries) -> Retriever:
    """The same release, with what is known of one query in the place of the encoder.

    A model gives a text other last bits among others than alone, and a list that ends between two
    items may then end beside one of them.
    """
    return Retriever(
        retriever.release,
        _KnownQuery(encoded),
        retriever.searcher,
        retriever.payload,
        retriever.calibration,
        retriever.settings,
    )


@dataclass(frozen=True)
class _KnownQuery:
    """An encoder that says the same of every text."""

    encoded: EncodedQueries

    def encode(self, queries: Sequence[str], deadline: float = math.inf) -> EncodedQueries:
        return self.encoded.take(np.zeros(len(queries), np.int64))


class _Known:
    """The best items that any of the searches found."""

    def __init__(
        self,
        best_ids: np.ndarray,
        best_scores: np.ndarray,
        answers: list[RetrievalResponse],
        limit: int,
    ):
        self._limit = limit
        scores = dict(zip(best_ids.tolist(), best_scores.tolist(), strict=True))
        for answer in answers:
            ids = answer.items.item_ids[:limit]
            # Nearly always: an approximate search brings what another missed only now and then.
            if not np.array_equal(ids, best_ids[: len(ids)]):
                for item_id, score in zip(ids.tolist(), answer.items.scores.tolist(), strict=False):
                    scores.setdefault(item_id, score)
        ranked = sorted(scores, key=lambda item_id: (-scores[item_id], item_id))[:limit]
        self._ids = np.array(ranked, best_ids.dtype)
        self._scores = [scores[item_id] for item_id in ranked]

    def rows(self, retriever: Retriever) -> list[dict[str, Any]]:
        """The items, best first, with their columns."""
        fields = retriever.payload.rows(self._ids)
        return [
            {"item_id": str(item_id), "score": score, "fields": columns}
            for item_id, score, columns in zip(
                self._ids.tolist(), self._scores, fields, strict=True
            )
        ]

    def missed_by(self, answer: RetrievalResponse) -> list[int]:
        """Places of items above the end of the list of an answer that are not in it."""
        ids = answer.items.item_ids[: self._limit]
        if np.array_equal(ids, self._ids[: len(ids)]):
            return []
        found = np.isin(self._ids, ids)
        cut = len(answer.items.item_ids) > len(ids)
        end = len(found) if cut else np.flatnonzero(found).max(initial=-1) + 1
        return np.flatnonzero(~found[:end]).tolist()


def _cosine(threshold: float) -> float | None:
    return float(threshold) if threshold > -1 else None


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

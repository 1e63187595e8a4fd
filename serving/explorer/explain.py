"""Why the list of a query ends where it ends, as data for one page.

The page needs no request while a user moves the slider: the data hold the length of the list at
every value of a fine grid, found by the same search that answers requests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.cutoff.calibration import CALIBRATED_KNOBS
from pebr_tf.errors import UserError
from pebr_tf.metrics.results import ExampleQuery
from pebr_tf.metrics.strata import STRATA
from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.retrieval.encoded import EncodedQueries
from serving.retrieval import RetrievalRequest, RetrievalResponse
from serving.retriever import Retriever

BINS = 40
# Grid steps per factor of ten, for the knobs that count items.
STEPS_PER_DECADE = 15


def explain(retriever: Retriever, query: str, limit: int, knob: str = "recall") -> dict[str, Any]:
    """The data that the page draws for a query; plain numbers, texts, lists and dicts.

        query, stratum, unfamiliar, release, catalogue (its number of items), floor, limit, family,
        columns
        tau, alpha, beta, background_alpha, background_beta, level
        default     {knob, value} of the release
        knob        the knob of `stops`
        policy      the policy that ends lists for that knob
        items       [{item_id, score, fields}] the best items, at most `limit`
        stops       [{value, cutoff, count, truncated, threshold, level, expected_recall, missed}],
                    from the shortest list to the longest
        background  {edges [n + 1], counts [n]} of the cosines of the index's random sample
        clicks      cosines of the query's held-out clicks; empty if the release has none

    The list at a stop is the first `count` of `items` whose indices are not in `missed`: those that
    the approximate search for that list did not find. `threshold` is None if the list ends at a
    rank, and `expected_recall` is None for knobs without a calibrated recall.

    Raises:
      InvalidArgument: As `Retriever.retrieve`.
    """
    calibration, release = retriever.calibration, retriever.release
    values = stop_values(retriever, knob)
    retriever.check(RetrievalRequest((query,), knob, values[0], limit))
    encoded = retriever.encoder.encode([query])
    # A model may return other last bits for a text in a batch than alone, and a list that ends
    # between two items could then end beside one of them: the query is encoded once for all stops.
    fixed = replace(retriever, encoder=_FixedEncoder(encoded))
    requests = [RetrievalRequest((query,), knob, value, fields=()) for value in values]
    responses = fixed.answer(requests)
    best = retriever.searcher.search(encoded.embedding, top_k=limit, limit=limit)
    scores = _scores_of_all(best.item_ids, best.scores, responses, limit)
    ids = np.array(list(scores), best.item_ids.dtype)
    return {
        "query": query,
        "stratum": STRATA[encoded.stratum[0]],
        "unfamiliar": bool(encoded.unfamiliar[0]),
        "release": release.version,
        "catalogue": len(retriever.searcher),
        "floor": calibration.floor,
        "limit": calibration.limit,
        "family": calibration.family,
        "columns": retriever.payload.columns,
        **{
            name: _number(getattr(responses[-1].encoded, name)[0])
            for name in ("tau", "alpha", "beta", "background_alpha", "background_beta", "level")
        },
        "default": {"knob": calibration.default_knob, "value": calibration.default_value},
        "knob": knob,
        "policy": calibration.policy if knob in CALIBRATED_KNOBS else knob,
        "items": [
            {"item_id": str(item_id), "score": score, "fields": fields}
            for (item_id, score), fields in zip(
                scores.items(), retriever.payload.fields(ids), strict=True
            )
        ],
        "stops": [
            {
                "value": response.value,
                "cutoff": float(
                    retriever.knobs.rule(knob, response.value).cutoffs[encoded.stratum[0]]
                ),
                "count": int(response.items.counts[0]),
                "truncated": bool(response.items.truncated[0]),
                "threshold": _number(response.items.thresholds[0], above=-1),
                "level": _number(response.encoded.level[0]),
                "expected_recall": _number(response.expected_recall[0]),
                "missed": _missed(response.items.item_ids, ids, limit),
            }
            for response in responses
        ],
        "background": histogram(retriever.searcher.background @ encoded.embedding[0]),
        "clicks": next(
            (each.clicks for each in example_queries(release.directory) if each.query == query), []
        ),
    }


def example_queries(release: Path) -> list[ExampleQuery]:
    """Test queries of the evaluation in a release's folder, specific ones first; may be empty."""
    try:
        return ModelEvaluation.load(release).examples
    except UserError:
        return []


def stop_values(retriever: Retriever, knob: str) -> list[float]:
    """The grid of a knob, from the shortest list to the longest, with the release's default."""
    calibration = retriever.calibration
    if knob in ("recall", "share"):
        grid = [percent / 100 for percent in range(1, 100)]
    elif knob == "score":
        grid = [percent / 100 for percent in (*range(-100, 0, 10), *range(0, 101))]
    else:
        floor, limit = max(calibration.floor, 1), calibration.limit
        steps = 1 + math.ceil(STEPS_PER_DECADE * math.log10(limit / floor))
        grid = np.geomspace(floor, limit, steps).round().tolist()
    if knob == calibration.default_knob:
        grid.append(calibration.default_value)
    # A high score means a short list.
    return sorted({float(value) for value in grid}, reverse=knob == "score")


def histogram(cosines: np.ndarray) -> dict[str, list[float]]:
    """Counts of cosines in BINS bins of equal width; empty lists if there are no cosines."""
    if not len(cosines):
        return {"edges": [], "counts": []}
    counts, edges = np.histogram(cosines, BINS)
    return {"edges": edges.tolist(), "counts": counts.tolist()}


@dataclass(frozen=True)
class _FixedEncoder:
    encoded: EncodedQueries

    def encode(
        self, queries: Sequence[str], deadline: float = math.inf, with_law: bool = True
    ) -> EncodedQueries:
        return self.encoded.take(np.zeros(len(queries), np.int64))


def _scores_of_all(
    best_ids: np.ndarray, best_scores: np.ndarray, responses: list[RetrievalResponse], limit: int
) -> dict[Any, float]:
    scores = dict(zip(best_ids.tolist(), best_scores.tolist(), strict=True))
    for response in responses:
        ids = response.items.item_ids[:limit]
        # Rarely different: only if an approximate search found what another missed.
        if not np.array_equal(ids, best_ids[: len(ids)]):
            found = zip(ids.tolist(), response.items.scores.tolist(), strict=False)
            scores = dict(found) | scores
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:limit])


def _missed(listed: np.ndarray, ids: np.ndarray, limit: int) -> list[int]:
    """Indices of `ids` that lie above the end of a list but are not in it."""
    shown = listed[:limit]
    if np.array_equal(shown, ids[: len(shown)]):
        return []
    is_found = np.isin(ids, shown)
    is_longer = len(listed) > len(shown)
    end = len(ids) if is_longer else np.flatnonzero(is_found).max(initial=-1) + 1
    return np.flatnonzero(~is_found[:end]).tolist()


def _number(value: float, above: float = -math.inf) -> float | None:
    return float(value) if math.isfinite(value) and value > above else None

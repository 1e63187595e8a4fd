"""What a release answered when it was pushed, and whether it still answers so.

self_test.json holds a few queries and, for each, what came back: the threshold, the number of items
and the best of them. Checksums show that the files are the same; this shows that they mean the same
to the TensorFlow, the processor or the TF Serving that reads them now.

Another processor adds numbers in another order. So these may differ, and no more:

    score       by 1e-4; rounding moves a cosine by about 1e-6, and other weights by much more
    threshold   by 1e-3; it is where a curve crosses a level that many scores have made
    count       by 2%, or 2 items: those whose cosines are that close to the threshold
    best items  in the order of those whose scores are that close, also at the end of the best
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pebr_tf.errors import UserError
from serving.retriever import Retriever

SELF_TEST = "self_test.json"
# Of each list this many items are kept: the head of it is what users see.
BEST = 10
SCORE_TOLERANCE = 1e-4
THRESHOLD_TOLERANCE = 1e-3
COUNT_TOLERANCE = 0.02
COUNT_SLACK = 2
LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recorded:
    """The answer to one query.

    Attributes:
      query: Its text.
      knob: What ended the list, None for the release's default.
      value: Of the knob, or None.
      count: Number of items.
      threshold: Cosine where the list ends; None where every cosine passes.
      item_ids: The best, at most `BEST`.
      scores: Their cosines, descending.
    """

    query: str
    knob: str | None
    value: float | None
    count: int
    threshold: float | None
    item_ids: tuple[str | int, ...]
    scores: tuple[float, ...]


def record(retriever: Retriever, queries: Sequence[str]) -> list[Recorded]:
    """What a loaded release answers, by its default knob and by top_k."""
    items = min(max(BEST, retriever.calibration.floor), retriever.calibration.limit)
    return [
        answer
        for knob, value in ((None, None), ("top_k", float(items)))
        for answer in _ask(retriever, queries, knob, value)
    ]


def write(directory: Path, answers: Sequence[Recorded]) -> None:
    """Writes self_test.json into the folder of a release."""
    content = {"answers": [asdict(answer) for answer in answers]}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    (directory / SELF_TEST).write_text(text + "\n", encoding="utf-8")


def check(retriever: Retriever) -> None:
    """Asks a loaded release the queries of its self-test.

    A release without one, from before there was one or pushed untried, passes.

    Raises:
      UserError: It answers otherwise than when it was pushed; names the query and the difference.
    """
    recorded = _read(retriever.release.path(SELF_TEST))
    if not recorded:
        LOGGER.info("Release %s has no self-test.", retriever.release.version)
    compare(retriever, recorded)


def compare(retriever: Retriever, recorded: Sequence[Recorded]) -> None:
    """Asks a loaded release again; raises what `check` raises."""
    asked: dict[tuple[str | None, float | None], list[Recorded]] = {}
    for answer in recorded:
        asked.setdefault((answer.knob, answer.value), []).append(answer)
    for (knob, value), before in asked.items():
        now = _ask(retriever, [answer.query for answer in before], knob, value)
        for expected, received in zip(before, now, strict=True):
            found = difference(expected, received)
            if found is not None:
                knob_text = "the default knob" if knob is None else f"{knob} {value:g}"
                raise UserError(
                    f"{retriever.release.directory} must answer as when it was pushed. Received: "
                    f"for {expected.query!r} by {knob_text}, {found}."
                )


def _ask(
    retriever: Retriever, queries: Sequence[str], knob: str | None, value: float | None
) -> list[Recorded]:
    if not queries:
        return []
    items = retriever.retrieve(queries, knob, value).items
    found = []
    for row, query in enumerate(queries):
        item_ids, scores = (values[:BEST].tolist() for values in items.row(row))
        threshold = float(items.thresholds[row])
        found.append(
            Recorded(
                query=query,
                knob=knob,
                value=value,
                count=int(items.counts[row]),
                threshold=threshold if -1 <= threshold < math.inf else None,
                item_ids=tuple(item_ids),
                scores=tuple(scores),
            )
        )
    return found


def difference(expected: Recorded, received: Recorded) -> str | None:
    """How two answers to one query differ beyond rounding, in a few words, or None."""
    if not _close(expected.threshold, received.threshold, THRESHOLD_TOLERANCE):
        return f"threshold {_cosine(received.threshold)} instead of {_cosine(expected.threshold)}"
    slack = max(COUNT_SLACK, COUNT_TOLERANCE * expected.count)
    if abs(received.count - expected.count) > slack:
        return f"{received.count} items instead of {expected.count}"
    # Beyond the shorter list are items at the threshold, which the count has allowed for.
    shared = min(len(expected.scores), len(received.scores))
    for rank in range(shared):
        if not _close(expected.scores[rank], received.scores[rank], SCORE_TOLERANCE):
            return (
                f"score {_cosine(received.scores[rank])} at rank {rank + 1} instead of "
                f"{_cosine(expected.scores[rank])}"
            )
    before = dict(zip(expected.item_ids[:shared], expected.scores[:shared], strict=True))
    for rank in range(shared):
        item_id, score = received.item_ids[rank], received.scores[rank]
        # One that is new among the best has taken the place of the last.
        if not _close(before.get(item_id, expected.scores[shared - 1]), score, SCORE_TOLERANCE):
            return f"item {item_id!r} at rank {rank + 1} instead of {expected.item_ids[rank]!r}"
    return None


def _close(expected: float | None, received: float | None, tolerance: float) -> bool:
    if expected is None or received is None:
        return expected is received
    return abs(expected - received) <= tolerance


def _cosine(value: float | None) -> str:
    return "none" if value is None else f"{value:.5f}"


def _read(path: Path) -> list[Recorded]:
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))["answers"]
        return [
            Recorded(
                **{
                    **answer,
                    "item_ids": tuple(answer["item_ids"]),
                    "scores": tuple(map(float, answer["scores"])),
                }
            )
            for answer in answers
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{path} must be the self-test of a release. Received: {error}.") from None

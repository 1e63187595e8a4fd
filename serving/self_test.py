"""The self-test of a release: queries, and the answers that the release gave when it was pushed.

Checksums show that the files are the same. The self-test shows that they still mean the same to
the TensorFlow, the processor or the TF Serving that reads them now.

Other processors add numbers in another order. Therefore answers may differ by this much:

    score       by 1e-4; rounding changes a cosine by about 1e-6, other weights by much more
    threshold   by 1e-3; it is where a curve made of many scores crosses a level
    count       by 2%, or by 2 items: those whose cosines are that close to the threshold
    best items  in the order of those whose scores are that close, also at the end of the list
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import TypeAdapter, ValidationError

from pebr_tf.errors import UserError
from serving.retriever import Retriever

# Items of each list that are stored, best first.
BEST = 10
SCORE_TOLERANCE = 1e-4
THRESHOLD_TOLERANCE = 1e-3
COUNT_TOLERANCE = 0.02
COUNT_SLACK = 2
LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordedAnswer:
    """The answer to one query.

    Attributes:
      knob: The knob that ended the list, None for the release's default.
      threshold: Cosine where the list ends; None where every cosine passes.
      item_ids: The best items, at most `BEST`.
      scores: Their cosines, descending.
    """

    query: str
    knob: str | None
    value: float | None
    count: int
    threshold: float | None
    item_ids: tuple[str | int, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True)
class SelfTest:
    """The content of self_test.json: one answer per knob and query."""

    FILE: ClassVar[str] = "self_test.json"

    answers: tuple[RecordedAnswer, ...] = ()

    @classmethod
    def record(cls, retriever: Retriever, queries: Sequence[str]) -> SelfTest:
        """The answers of a loaded release, with its default knob and with top_k."""
        items = min(max(BEST, retriever.calibration.floor), retriever.calibration.limit)
        return cls(
            tuple(
                answer
                for knob, value in ((None, None), ("top_k", float(items)))
                for answer in _answers(retriever, queries, knob, value)
            )
        )

    @classmethod
    def load(cls, directory: Path) -> SelfTest:
        """Reads the self-test of the release in `directory`; empty if the release has none."""
        path = directory / cls.FILE
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except (OSError, ValidationError) as error:
            reason = error if isinstance(error, OSError) else error.errors()[0]["msg"]
            raise UserError(
                f"{path} must be the self-test of a release. Received: {reason}."
            ) from None

    def save(self, directory: Path) -> Path:
        """Writes self_test.json into the folder of a release; returns its path."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        path = directory / self.FILE
        path.write_text(text + "\n", encoding="utf-8")
        return path

    def compare(self, retriever: Retriever) -> None:
        """Asks a loaded release the queries of the self-test, if it has any.

        Raises:
          UserError: An answer differs; names the query and the difference.
        """
        if not self.answers:
            LOGGER.info("Release %s has no self-test.", retriever.release.version)
        by_knob: dict[tuple[str | None, float | None], list[RecordedAnswer]] = {}
        for answer in self.answers:
            by_knob.setdefault((answer.knob, answer.value), []).append(answer)
        for (knob, value), before in by_knob.items():
            now = _answers(retriever, [answer.query for answer in before], knob, value)
            for expected, received in zip(before, now, strict=True):
                found = difference(expected, received)
                if found is not None:
                    knob_text = "the default knob" if knob is None else f"{knob} {value:g}"
                    raise UserError(
                        f"{retriever.release.directory} must answer as when it was pushed. "
                        f"Received: for {expected.query!r} by {knob_text}, {found}."
                    )


def _answers(
    retriever: Retriever, queries: Sequence[str], knob: str | None, value: float | None
) -> list[RecordedAnswer]:
    if not queries:
        return []
    items = retriever.retrieve(queries, knob, value).items
    found = []
    for row, query in enumerate(queries):
        item_ids, scores = (values[:BEST].tolist() for values in items.row(row))
        threshold = float(items.thresholds[row])
        found.append(
            RecordedAnswer(
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


def difference(expected: RecordedAnswer, received: RecordedAnswer) -> str | None:
    """How two answers to one query differ beyond rounding, in a few words, or None."""
    if not _close(expected.threshold, received.threshold, THRESHOLD_TOLERANCE):
        return f"threshold {_cosine(received.threshold)} instead of {_cosine(expected.threshold)}"
    slack = max(COUNT_SLACK, COUNT_TOLERANCE * expected.count)
    if abs(received.count - expected.count) > slack:
        return f"{received.count} items instead of {expected.count}"
    # Items beyond the shorter list are at the threshold; the count has been compared already.
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
        # An item that is new among the best has replaced the last one.
        if not _close(before.get(item_id, expected.scores[shared - 1]), score, SCORE_TOLERANCE):
            return f"item {item_id!r} at rank {rank + 1} instead of {expected.item_ids[rank]!r}"
    return None


def _close(expected: float | None, received: float | None, tolerance: float) -> bool:
    if expected is None or received is None:
        return expected is received
    return abs(expected - received) <= tolerance


def _cosine(value: float | None) -> str:
    return "none" if value is None else f"{value:.5f}"

"""What a way to search is to the benchmark: built, tuned to a recall, and asked.

Tuning looks for the least time with which the smaller of macro and micro recall reaches the target
on the tuning queries.
"""

import abc
import bisect
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pebr_tf.retrieval.result import RangeResult, splits_of
from pebr_tf.retrieval.tune import TuningExamples, lowest_recall, recall


@dataclass(frozen=True)
class Work:
    """What a method is built and tuned on.

    Attributes:
      items: [N, n] unit vectors.
      tuning: Queries with exact answers.
      target: Recall to reach on other queries.
    """

    items: np.ndarray
    tuning: TuningExamples
    target: float

    @property
    def tuned(self) -> float:
        """Recall to reach on the tuning queries: a little more, and the same for all."""
        return lowest_recall(self.target)

    @property
    def leaves(self) -> int:
        """About 2 sqrt(N), for every method that has leaves."""
        return 2 * round(len(self.items) ** 0.5)


class Method(abc.ABC):
    """One way to search.

    Attributes:
      name: Its row in the table.
      setting: What tuning chose, in words.
      seconds: Time to build and tune.
      reached: Macro and micro recall on the tuning queries.
    """

    name: str
    setting = ""
    seconds = 0.0
    reached = (1.0, 1.0)

    def prepare(self, work: Work) -> None:
        """Builds and tunes."""
        begin = time.perf_counter()
        self.build(work)
        self.tune(work)
        self.seconds = time.perf_counter() - begin

    @abc.abstractmethod
    def build(self, work: Work) -> None:
        """Makes the index."""

    @abc.abstractmethod
    def search(self, queries: np.ndarray, thresholds: np.ndarray) -> RangeResult:
        """The items above the thresholds."""

    def ladders(self, work: Work) -> list[list[Any]]:
        """Lists of settings to try, each of which takes longer and finds more than the last."""
        return []

    def use(self, setting: Any) -> None:
        """Takes a setting."""
        self.setting = str(setting)

    def tune(self, work: Work) -> None:
        """Keeps the fastest setting that reaches the target, or the one of the best recall.

        Of each ladder the lowest step that reaches it is found by bisection.
        """
        trials: list[_Trial] = []

        def passes(setting: Any) -> bool:
            self.use(setting)
            begin = time.perf_counter()
            found = self.search(work.tuning.queries, work.tuning.thresholds)
            seconds = time.perf_counter() - begin
            trials.append(_Trial(setting, seconds, recall(found, work.tuning.answers)))
            return min(trials[-1].reached) >= work.tuned

        for ladder in self.ladders(work):
            bisect.bisect_left(ladder, True, key=passes)
        passed = [trial for trial in trials if min(trial.reached) >= work.tuned]
        if passed:
            best = min(passed, key=lambda trial: trial.seconds)
        elif trials:
            best = max(trials, key=lambda trial: min(trial.reached))
        else:
            return
        self.reached = best.reached
        self.use(best.setting)


class _Trial(NamedTuple):
    """What a setting took on the tuning queries, and the macro and micro recall it reached."""

    setting: Any
    seconds: float
    reached: tuple[float, float]


def steps(lowest: float, highest: float, most: int) -> list[int]:
    """Whole numbers from `lowest` to `highest` times `most`, each about 15% above the last."""
    count = 1 + int(np.ceil(np.log(highest / lowest) / np.log(1.15)))
    return np.unique((np.geomspace(lowest, highest, count) * most).astype(int).clip(1)).tolist()


def packed(rows: list[tuple[np.ndarray, np.ndarray]], thresholds: np.ndarray) -> RangeResult:
    """A result from the ids and scores of each query."""
    counts = np.array([len(ids) for ids, _ in rows])
    return RangeResult(
        row_splits=splits_of(counts),
        item_ids=np.concatenate([ids for ids, _ in rows]).astype(np.int64),
        scores=np.concatenate([scores for _, scores in rows]),
        thresholds=thresholds,
        expected_counts=counts.astype(np.float32),
        truncated=np.zeros(len(rows), bool),
    )

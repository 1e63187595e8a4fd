"""What the recall knob keeps on test queries, before and after calibration, and its guarantee."""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.coverage import coverage
from experiments.cutoffs_measured import SOURCES as CUTOFFS_SOURCES
from experiments.cutoffs_measured import counts_of
from experiments.released import Released, released
from experiments.study import Study
from pebr_tf.cutoff.candidates import levels_of
from pebr_tf.cutoff.evaluation import RECALLS as REQUESTED
from pebr_tf.cutoff.policies.nucleus import NucleusPolicy
from pebr_tf.metrics.comparison import groups_of
from pebr_tf.metrics.ranked import RankedLists, Ranks

__all__ = ["CALIBRATED", "REQUESTED", "SOURCES", "WAYS", "measure"]

SOURCES = (
    *CUTOFFS_SOURCES,
    "experiments.coverage",
    "experiments.calibration_measured",
)
# What turns a share into the end of a list: two raw laws, then calibrated ones.
WAYS = {
    "cdf": "literal pEBR, raw",
    "nucleus": "softmax mass, raw",
    "level_one_map": "level, one map",
    "level": "level, as served",
}
CALIBRATED = ("level_one_map", "level")
# Groups with fewer queries have no guarantee worth a look.
_LEAST_QUERIES = 20


def measure(towers: Study, draws: int) -> dict[str, Any]:
    """Reliability of each way on test queries, and coverage over random halves.

    Args:
      towers: Trained.
      draws: Random halves; see `coverage`.

    Returns:
      `recall` and `expected` by way and group, [K] with a share for each of REQUESTED; `average` by
      way [K], items per query; `coverage` by group, the attributes of a `Coverage` but for
      `requested`; `queries` by group, of the test; `level_temperature` and `depth`.
    """
    release = released(towers)
    strata = release.test.queries.strata
    groups = groups_of(strata)
    counts = {way: _counts(towers, release, way) for way in WAYS}
    recall = {
        way: {
            name: [release.lists.figures(row, mask).recall for row in rows]
            for name, mask in groups.items()
        }
        for way, rows in counts.items()
    }
    return {
        "recall": recall,
        "expected": {way: _expected(release, way, groups) for way in WAYS},
        "average": {way: rows.mean(axis=1) for way, rows in counts.items()},
        "coverage": _coverages(towers, release, draws),
        "queries": {name: int(mask.sum()) for name, mask in groups.items()},
        "level_temperature": release.policy.level_temperature,
        "depth": release.test.depth,
    }


def _counts(towers: Study, release: Released, way: str) -> np.ndarray:
    """[K, Q] items of the test queries."""
    test = release.test
    if way != "nucleus":
        return counts_of(towers, release, way, REQUESTED)
    level = levels_of(towers.items, test.queries, test.family, 1.0)
    massed = replace(test, levels={**test.levels, 1.0: level})
    masses = NucleusPolicy().lists(massed)
    # The score is the log of the mass from an item on, so 1 less what is before it.
    return np.stack([masses.counts_at(np.log1p(-recall)) for recall in REQUESTED])


def _expected(release: Released, way: str, groups: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """[K] by group, the recall that a way expects: what is requested, or what its map reaches."""
    calibration = release.calibration
    if way == "level":
        strata = release.test.queries.strata
        each = np.stack([calibration.expected_recall(recall, strata) for recall in REQUESTED])
        return {name: each[:, mask].mean(axis=1) for name, mask in groups.items()}
    expected = np.array(REQUESTED)
    if way in CALIBRATED:
        expected = np.clip(expected, calibration.recall.lowest, calibration.recall.highest)
    return dict.fromkeys(groups, expected)


def _coverages(towers: Study, release: Released, draws: int) -> dict[str, Any]:
    """Coverage overall and by stratum, each with maps of its own.

    All held-out queries take part, with the level temperature that was tuned on those of the
    calibrate split.
    """
    level_temperature = release.policy.level_temperature
    other = towers.candidates("calibrate", (level_temperature,), release.test.depth)
    lists = pooled(release.policy.lists(other), release.lists)
    strata = np.concatenate([other.queries.strata, release.test.queries.strata])
    floor, limit = release.calibration.floor, release.calibration.limit
    found = {}
    for name, mask in groups_of(strata).items():
        if mask.sum() < _LEAST_QUERIES:
            continue
        each = coverage(lists.part(mask), REQUESTED, draws, floor, limit)
        found[name] = {"recall": each.recall, "reached": each.reached, "queries": each.queries}
    return found


def pooled(first: RankedLists, second: RankedLists) -> RankedLists:
    """The queries of both, with as many candidates each."""
    rows = np.concatenate([first.relevant.rows, second.relevant.rows + len(first)])
    offsets = [
        np.zeros(len(each), np.float32) if each.offsets is None else each.offsets
        for each in (first, second)
    ]
    return RankedLists(
        np.concatenate([first.scores, second.scores]),
        Ranks(rows, np.concatenate([first.relevant.ranks, second.relevant.ranks])),
        np.concatenate([first.totals, second.totals]),
        np.concatenate(offsets),
    )

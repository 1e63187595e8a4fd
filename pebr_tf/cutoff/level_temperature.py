"""Tunes the level temperature T of the level on held-out clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies import LevelPolicy, TopKPolicy
from pebr_tf.metrics.ranked import RankedLists

# Fine where the best one was found on all data sets that were tried.
GRID = (0.0, 0.1, 0.2, *(round(0.3 + 0.1 * step, 1) for step in range(13)), 1.75, 2.0, 2.5, 3.0)
# Recalls within this distance count as equal.
TIE = 0.002


@dataclass(frozen=True)
class LevelTuning:
    """Figures of each level temperature on held-out clicks, and the chosen one.

    Attributes:
      level_temperatures: [T] the candidates.
      recall: [T, K] macro recall at each average.
      precision: [T, K] macro precision at each average.
    """

    level_temperature: float
    level_temperatures: tuple[float, ...]
    recall: np.ndarray
    precision: np.ndarray


def level_temperatures_for(fixed: float | None) -> tuple[float, ...]:
    """The level temperatures to compute: the grid or the fixed one, and 1 for the nucleus."""
    return tuple(sorted({*(GRID if fixed is None else (fixed,)), 1.0}))


def tune_level_temperature(
    candidates: Candidates, average_k: Sequence[int], fixed: float | None = None
) -> LevelTuning:
    """Chooses the level temperature with the best recall that costs no precision.

    Among the level temperatures whose macro precision is at least that of top k at every average,
    this is the one with the greatest mean macro recall. Recalls within .002 count as equal, and the
    higher precision decides. If no level temperature keeps the precision, all compete.

    `candidates` are of calibrate queries, with levels at `level_temperatures_for(fixed)`. A level
    temperature `fixed` is used without tuning.
    """
    level_temperatures = GRID if fixed is None else (fixed,)
    measured = [
        _measure(LevelPolicy(level_temperature=each).lists(candidates), average_k)
        for each in level_temperatures
    ]
    recall, precision = (np.array(column) for column in zip(*measured, strict=True))
    _, base_precision = _measure(TopKPolicy().lists(candidates), average_k)
    kept = (precision >= base_precision).all(axis=1)
    eligible = kept if kept.any() else np.ones(len(level_temperatures), bool)
    mean_recall = np.where(eligible, recall.mean(axis=1), -np.inf)
    tied = mean_recall >= mean_recall.max() - TIE
    chosen = int(np.argmax(np.where(tied, precision.mean(axis=1), -np.inf)))
    return LevelTuning(
        level_temperature=float(level_temperatures[chosen]),
        level_temperatures=tuple(level_temperatures),
        recall=recall,
        precision=precision,
    )


def _measure(lists: RankedLists, average_k: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """[K] macro recall and [K] macro precision at each average."""
    figures = [lists.figures(lists.counts_at(lists.cutoff_at(k))) for k in average_k]
    return (
        np.array([figure.recall for figure in figures]),
        np.array([figure.precision for figure in figures]),
    )

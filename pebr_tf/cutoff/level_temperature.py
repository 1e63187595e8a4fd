"""Tunes the level temperature T of the level on held-out clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies import Policies
from pebr_tf.metrics.ranked import RankedLists

# Fine where the best was found on every data set tried.
GRID = (0.0, 0.1, 0.2, *(round(0.3 + 0.1 * step, 1) for step in range(13)), 1.75, 2.0, 2.5, 3.0)
# Recalls so close are equal, and the higher precision decides.
TIE = 0.002


@dataclass(frozen=True)
class LevelTuning:
    """What each level_temperature gives on held-out clicks, and the one that was chosen.

    Attributes:
      level_temperature: The chosen T.
      level_temperatures: [T] those that were tried.
      recall: [T, K] macro recall at each average.
      precision: [T, K] macro precision at each average.
      top_k_recall: [K] the recall of the fixed number.
      top_k_precision: [K] its precision.
    """

    level_temperature: float
    level_temperatures: tuple[float, ...]
    recall: np.ndarray
    precision: np.ndarray
    top_k_recall: np.ndarray
    top_k_precision: np.ndarray


def level_temperatures_for(fixed: float | None) -> tuple[float, ...]:
    """The level temperatures to compute: those to try or the fixed one, and 1 for the nucleus."""
    return tuple(sorted({*(GRID if fixed is None else (fixed,)), 1.0}))


def tune_level_temperature(
    candidates: Candidates, average_k: Sequence[int], fixed: float | None = None
) -> LevelTuning:
    """Chooses the level temperature with the best recall that costs no precision.

    Of the level_temperatures whose macro precision is at least that of the fixed number at every
    average, the
    one with the greatest macro recall, averaged over the averages; of recalls within .002 the one
    with the higher precision. If none keeps the precision, all compete.

    Args:
      candidates: Of calibrate queries, with levels at `level_temperatures_for(fixed)`.
      average_k: Averages to compare at.
      fixed: The level temperature to take as it is; None tunes.
    """
    level_temperatures = GRID if fixed is None else (fixed,)
    measured = [
        _measure(Policies(t).lists("level", candidates), average_k) for t in level_temperatures
    ]
    recall, precision = (np.array(column) for column in zip(*measured, strict=True))
    base_recall, base_precision = _measure(Policies(1.0).lists("top_k", candidates), average_k)
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
        top_k_recall=base_recall,
        top_k_precision=base_precision,
    )


def _measure(lists: RankedLists, average_k: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """[K] macro recall and [K] macro precision at each average."""
    figures = [lists.figures(lists.counts_at(lists.cutoff_at(k))) for k in average_k]
    return (
        np.array([figure.recall for figure in figures]),
        np.array([figure.precision for figure in figures]),
    )

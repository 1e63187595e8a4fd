"""Tunes the level temperature T of the level on held-out clicks, and compares it with top k."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.cutoff.policies.plain import TopKPolicy
from pebr_tf.data import splits
from pebr_tf.metrics.ranked import RankedLists, top_k_for

# Fine where the best one was found on all data sets that were tried.
GRID = (0.0, 0.1, 0.2, *(round(0.3 + 0.1 * step, 1) for step in range(13)), 1.75, 2.0, 2.5, 3.0)
# Recalls within this distance count as equal.
TIE = 0.002
FOLDS = 5


class LevelTuning(NamedTuple):
    """The chosen level temperature, and whether it beats top k, which is served otherwise."""

    level_temperature: float
    beats_top_k: bool


def level_temperatures_for(fixed: float | None) -> tuple[float, ...]:
    """The level temperatures to compute: the grid or the fixed one, and 1 for the nucleus."""
    return tuple(sorted({*(GRID if fixed is None else (fixed,)), 1.0}))


def deciding_queries(calibrates: np.ndarray) -> np.ndarray:
    """[Q] which held-out queries decide T, the policy and the law.

    `calibrates` [Q] tells which are of the split calibrate. The others, which cross-fitting adds,
    decide nothing but the maps, unless hardly any others are there.
    """
    enough = calibrates.sum() >= splits.LEAST_QUERIES
    return calibrates if enough else np.ones_like(calibrates)


def tune_policy(
    candidates: Candidates, average_k: Sequence[int], settings: Cutoff
) -> tuple[LevelTuning, str]:
    """`tune_level_temperature` with the settings, and the name of the policy to serve."""
    tuning = tune_level_temperature(
        candidates,
        average_k,
        settings.level_temperature,
        settings.default_value if settings.default_knob == "recall" else None,
    )
    serves_level = tuning.beats_top_k or settings.policy != "level"
    return tuning, settings.policy if serves_level else "top_k"


def tune_level_temperature(
    candidates: Candidates,
    average_k: Sequence[int],
    fixed: float | None = None,
    served: float | None = None,
) -> LevelTuning:
    """Chooses the level temperature with the best recall, if any is as good as top k.

    docs/pipeline.md, "The cut-off", has the rule. Lists are also measured at the number of items
    with which top k reaches the recall `served`, if that is not near one of `average_k`. Recalls
    within .002 count as equal, and precision decides. The choice is cross-validated: five times it
    is made without a fifth of the queries and measured on that fifth.

    `candidates` are of calibrate queries, with levels at `level_temperatures_for(fixed)`. A level
    temperature `fixed` is used without tuning.
    """
    level_temperatures = GRID if fixed is None else (fixed,)
    base = TopKPolicy().lists(candidates)
    averages: list[int] = list(average_k)
    items = None if served is None else top_k_for(base, served)
    # An average near another one tells nothing new, and would count twice.
    if items and all(max(items, k) > 2 * min(items, k) for k in averages):
        averages.append(items)
    policies = (LevelPolicy(level_temperature=each) for each in level_temperatures)
    ours = np.stack([_measure(policy.lists(candidates), averages) for policy in policies])
    theirs = _measure(base, averages)
    competes = np.asarray(_as_good(ours, theirs).all(axis=(1, 2)))
    eligible = competes if competes.any() else np.ones_like(competes)
    chosen = _best(ours, eligible)
    fold = np.random.default_rng(0).permutation(len(candidates)) % FOLDS
    tested = np.empty_like(theirs)
    for each in range(FOLDS):
        best = _best(ours[..., fold != each], eligible)
        tested[..., fold == each] = ours[best][..., fold == each]
    beats = bool(competes.any() and _as_good(tested, theirs).all()) or fixed is not None
    return LevelTuning(float(level_temperatures[chosen]), beats)


def _measure(lists: RankedLists, average_k: Sequence[int]) -> np.ndarray:
    """[2, K, Q] precision and recall of each query at each average."""
    shares = [lists.shares(lists.counts_at(lists.cutoff_at(k))) for k in average_k]
    return np.stack(shares, axis=1)


def _as_good(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Whether means over the last axis are at most a standard error below those of top k."""
    gain = ours - theirs
    error = gain.std(axis=-1) / np.sqrt(gain.shape[-1])
    return np.asarray(gain.mean(axis=-1) >= -error)


def _best(figures: np.ndarray, eligible: np.ndarray) -> int:
    """The index of the level temperature to choose by figures [T, 2, K, Q]."""
    precision, recall = np.moveaxis(figures.mean(axis=(2, 3)), 1, 0)
    recall = np.where(eligible, recall, -np.inf)
    tied = recall >= recall.max() - TIE
    return int(np.argmax(np.where(tied, precision, -np.inf)))

"""Variants of the level on the same towers: its temperature, and where it comes from."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.measured import SOURCES as MEASURED_SOURCES
from experiments.measured import figures_at, level_temperature_step, measured_with
from experiments.settings import ExperimentSettings
from experiments.step import Step
from experiments.study import Study, study
from experiments.towers import tower_step
from pebr_tf.cutoff.candidates import Candidates, levels_of
from pebr_tf.cutoff.policies.level import LevelPolicy, SampleLevelPolicy
from pebr_tf.distributions.level_numpy import levels_at, logits_of
from pebr_tf.retrieval.exact import sample_of
from pebr_tf.retrieval.level import ROUNDING

SOURCES = (
    *MEASURED_SOURCES,
    "pebr_tf.retrieval.exact",
    "pebr_tf.retrieval.level",
    "experiments.ablation_cutoffs",
)
LEVEL_TEMPERATURES = (0.0, 0.3, 0.6, 1.0, 1.5, 2.0)
PROBES = (10, 100, 1_000)
SAMPLES = (200, 2_000)
# What a release has by default.
SERVED = (100, 2_000)
TUNED, SAMPLE = "tuned", "sample"
# Items that give the level of that variant, without a search.
SAMPLED = 10_000


def level_temperature_name(level_temperature: float) -> str:
    """The variant with a fixed level temperature."""
    return f"level_temperature {level_temperature:g}"


def probe_name(probe: int, sample: int) -> str:
    """The variant with the level from a probe and a sample of so many items."""
    return f"probe {probe}, sample {sample}"


def cutoffs_step(settings: ExperimentSettings, dataset: str, seed: int) -> Step:
    """The variants on the default towers; see `measure_cutoffs`."""
    config = settings.config(dataset)

    def compute(result: Mapping[str, Any], level_tuning: Mapping[str, Any]) -> dict[str, Any]:
        return measure_cutoffs(study(settings, dataset, result), level_tuning["level_temperature"])

    return Step(
        title=f"{dataset}, seed {seed}: level temperatures and levels",
        key={"experiment": "ablation", "config": measured_with(config)},
        sources=SOURCES,
        compute=compute,
        needs=(
            tower_step(settings, dataset, {}, seed),
            level_temperature_step(settings, dataset, {}, seed),
        ),
        cost=40 if settings.scale == "full" else 8,
    )


def measure_cutoffs(towers: Study, level_temperature: float) -> dict[str, Any]:
    """The level with other level temperatures, and with levels as serving gets them, on the test
    queries.

    Returns:
      `at`: variant to average to group to figures; `error`, of those with another source, the mean
      distance to the exact level, in logits; `explained`, the share of the variance of
      tau * level that they explain; `level_temperature`, the tuned one.
    """
    averages = towers.config.evaluation.average_k
    test = towers.candidates("test", tuple(sorted({level_temperature, *LEVEL_TEMPERATURES})))
    level_temperatures = {
        TUNED: level_temperature,
        **{level_temperature_name(each): each for each in LEVEL_TEMPERATURES},
    }
    at = {
        name: figures_at(LevelPolicy(level_temperature=each).lists(test), averages, test)
        for name, each in level_temperatures.items()
    }
    levels = {
        probe_name(probe, sample): probed_levels(
            towers.items, test, level_temperature, probe, sample
        )
        for probe in PROBES
        for sample in SAMPLES
    }
    sampled = sample_of(towers.items, SAMPLED)
    levels[SAMPLE] = levels_of(sampled, test.queries, towers.family, level_temperature)
    for name, each in levels.items():
        guessed = replace(test, sample_levels=each)
        policy = SampleLevelPolicy(level_temperature=level_temperature)
        at[name] = figures_at(policy.lists(guessed), averages, test)
    exact = test.levels[level_temperature]
    return {
        "at": at,
        "error": {name: np.abs(each - exact).mean() for name, each in levels.items()},
        "explained": {
            name: _explained(test.tau * each, test.tau * exact) for name, each in levels.items()
        },
        "level_temperature": level_temperature,
    }


def probed_levels(
    items: np.ndarray, candidates: Candidates, level_temperature: float, probe: int, sample: int
) -> np.ndarray:
    """[Q] levels from the best items and a sample of the others, as `search_by_level` has them.

    Args:
      items: [N, n] float32 unit vectors of the corpus.
      candidates: The best items of the queries.
      level_temperature: T of the level.
      probe: Items of the small search; all candidates, if they are fewer.
      sample: Random items that stand for all the others.
    """
    queries = candidates.queries
    cosines = np.clip(queries.vectors @ sample_of(items, sample).T, -1, 1)
    # The last of the probe, scored another way, must not stand for others as well.
    last = candidates.cosines[:, :probe].min(axis=1, keepdims=True)
    others = cosines < last - ROUNDING
    best = candidates.logits[:, :probe]
    share = (len(items) - best.shape[1]) / np.maximum(others.sum(axis=1, keepdims=True), 1)
    weights = np.concatenate([np.ones_like(best), others * share], axis=1)
    logits = logits_of(cosines, queries.tau, candidates.family)
    # A sampled item among the best has no weight, and must not be the highest by rounding.
    logits = np.minimum(logits, best[:, :1])
    return levels_at(np.concatenate([best, logits], axis=1), [level_temperature], weights)[:, 0]


def _explained(received: np.ndarray, wanted: np.ndarray) -> float:
    """1 less the squared error of `received` over the variance of `wanted`."""
    variance = float(np.sum((wanted - wanted.mean()) ** 2))
    return 1 - float(np.sum((received - wanted) ** 2)) / max(variance, 1e-12)

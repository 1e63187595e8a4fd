"""Precision and recall of towers at equal averages, the level temperature tuned as a release tunes
it.

The steps are named by what decides them, not by the experiment that asks: experiments that measure
the same towers share them. Tables are made elsewhere (`seeds`), so that a new one measures nothing
anew.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.settings import ExperimentSettings
from experiments.step import Step
from experiments.study import SOURCES as STUDY_SOURCES
from experiments.study import Study, study
from experiments.towers import tower_step
from pebr_tf.config import Config
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.level_temperature import level_temperatures_for, tune_level_temperature
from pebr_tf.cutoff.policies.registry import evaluated_policies
from pebr_tf.metrics.comparison import at_averages
from pebr_tf.metrics.ranked import RankedLists

SOURCES = (*STUDY_SOURCES, "experiments.measured")
POLICIES = ("level", "top_k", "score", "cdf", "oracle")
TITLES = {policy.name: policy.title for policy in evaluated_policies(1.0)} | {
    "level": "level",
    "level_sample": "level from a sample",
    "score": "one cosine",
    "cdf": "literal pEBR",
}
# One temperature for all queries: literal pEBR is one cosine for all.
_WITHOUT_TAU = ("pointwise", "info_nce")
_SECTIONS = ("cutoff", "evaluation", "loss")


def level_temperature_step(
    settings: ExperimentSettings,
    dataset: str,
    changes: Mapping[str, Any] | None = None,
    seed: int = 0,
    share: float = 1.0,
) -> Step:
    """The level temperature of towers, tuned on the calibrate split: `level_temperature`.

    Args:
      settings: As for `tower_step`, and so are the others.
      dataset: One of `settings.datasets`.
      changes: Dotted keys of the config and their values.
      seed: Of the towers.
      share: Of the training rows.
    """
    towers = tower_step(settings, dataset, changes, seed, share)
    config = settings.config(dataset).replace_all(dict(changes or {}))
    return Step(
        title=_title(towers, "level_temperature"),
        key={"measured": "level_temperature", "config": measured_with(config)},
        sources=SOURCES,
        compute=lambda result: {
            "level_temperature": tuned(study(settings, dataset, result, changes))
        },
        needs=(towers,),
        cost=15 if settings.scale == "full" else 1,
    )


def measured_step(
    settings: ExperimentSettings,
    dataset: str,
    changes: Mapping[str, Any] | None = None,
    seed: int = 0,
    share: float = 1.0,
    averages: Sequence[int] | None = None,
) -> Step:
    """The figures of towers on the test queries; see `measure`.

    Args:
      settings: As for `tower_step`, and so are the next four.
      dataset: One of `settings.datasets`.
      changes: Dotted keys of the config and their values.
      seed: Of the towers.
      share: Of the training rows.
      averages: To measure at; None: those of the evaluation.
    """
    towers = tower_step(settings, dataset, changes, seed, share)
    config = settings.config(dataset).replace_all(dict(changes or {}))
    wanted = tuple(averages or config.evaluation.average_k)

    def compute(result: Mapping[str, Any], level_tuning: Mapping[str, Any]) -> dict[str, Any]:
        return measure(
            study(settings, dataset, result, changes), level_tuning["level_temperature"], wanted
        )

    return Step(
        title=_title(towers, "precision and recall"),
        key={"measured": "policies", "config": measured_with(config), "averages": list(wanted)},
        sources=SOURCES,
        compute=compute,
        needs=(towers, level_temperature_step(settings, dataset, changes, seed, share)),
        cost=10 if settings.scale == "full" else 1,
    )


def measured_with(config: Config) -> dict[str, Any]:
    """What of a config decides figures, beside the towers."""
    mapping = config.to_mapping()
    return {section: mapping[section] for section in _SECTIONS}


def tuned(towers: Study) -> float:
    """The level temperature that the calibrate split chooses, as in a release."""
    fixed = towers.config.cutoff.level_temperature
    candidates = towers.candidates("calibrate", level_temperatures_for(fixed))
    return tune_level_temperature(
        candidates, towers.config.evaluation.average_k, fixed
    ).level_temperature


def measure(towers: Study, level_temperature: float, averages: Sequence[int]) -> dict[str, Any]:
    """Every policy on the test queries.

    Returns:
      `level_temperature`, and `at`: policy to average to group to figures, see
      `metrics.at_averages`. Towers with one temperature for all queries have no `cdf`.
    """
    policies = {policy.name: policy for policy in evaluated_policies(level_temperature)}
    test = towers.candidates("test", (level_temperature,))
    without = ("cdf",) if towers.config.loss.family in _WITHOUT_TAU else ()
    at = {
        name: figures_at(policies[name].lists(test), averages, test)
        for name in POLICIES
        if name not in without
    }
    return {"level_temperature": level_temperature, "at": at}


def figures_at(
    lists: RankedLists, averages: Sequence[int], candidates: Candidates
) -> dict[str, Any]:
    """Average to group to figures of candidates that were scored by one policy."""
    at = at_averages(lists, averages, candidates.queries.strata, candidates.truncated)
    return {
        str(k): {group: dataclasses.asdict(each) for group, each in groups.items()}
        for k, groups in at.items()
    }


def _title(towers: Step, what: str) -> str:
    return f"{towers.title.removesuffix('towers')}{what}"

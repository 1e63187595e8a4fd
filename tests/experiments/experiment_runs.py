"""Hand-made outputs of experiments, and experiments run on the small synthetic logs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from experiments import settings as settings_module
from experiments.policies import rank_quantile
from experiments.settings import SYNTHETIC, ExperimentSettings
from experiments.step import Store, run_steps
from pebr_tf.cutoff import fitting

SMALL = ExperimentSettings("small", 1, None)
# Enough to see that every part fits the next.
_STEPS = 20


def figures(precision, recall, average, empty=0.0):
    """What `metrics.at_averages` has for one average, as far as experiments look."""
    each = {"precision": precision, "recall": recall, "average": average, "empty": empty}
    return {"overall": each, "head": {**each, "recall": recall / 2}}


def output(at, level_temperature=1.0, **more):
    """A run's result from policy to average to (precision, recall)."""
    shown = {
        policy: {str(k): figures(*pair, average=k) for k, pair in by_average.items()}
        for policy, by_average in at.items()
    }
    return {"at": shown, "level_temperature": level_temperature, **more}


def run_small(module: ModuleType, cache: Path):
    """Outputs and results of an experiment at the small scale, with shorter trainings and fits.

    Experiments that are given the same cache share their towers.
    """
    with pytest.MonkeyPatch.context() as patch:
        changes = settings_module._CHANGES[SYNTHETIC, "small"]
        shorter = {**changes, "training.steps": _STEPS}
        patch.setitem(settings_module._CHANGES, (SYNTHETIC, "small"), shorter)
        patch.setattr(fitting, "MOST_STEPS", 5)
        patch.setitem(rank_quantile._TREES, "max_iter", 3)
        outputs = run_steps(module.steps(SMALL), Store(cache))
        return outputs, module.results(SMALL, outputs)

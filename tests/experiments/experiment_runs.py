"""Hand-made outputs of experiments, and experiments run on a tiny synthetic log."""

import json
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from small_logs import small_corpus

from experiments import first_run_logs, towers
from experiments import settings as settings_module
from experiments.corpora import Corpus
from experiments.policies import rank_quantile
from experiments.settings import ExperimentSettings
from experiments.step import Store, run_steps
from experiments.study import Study
from pebr_tf.config import Config
from pebr_tf.cutoff import fitting
from pebr_tf.cutoff.candidates import QueryVectors

SMALL = ExperimentSettings("small", 1, None)
# Enough to see that every part fits the next.
_SPEC = {"items": 600, "queries": 400, "clicks": 12_000}
_CONSTANT_TAU = ("info_nce", "pointwise")


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


def untrained(
    data: Corpus, config: Config, share: float = 1.0, by_retrieval: bool = False
) -> dict[str, Any]:
    """What `towers.train` returns, but of towers that saw no click; others for other settings."""
    settings = json.dumps([config.to_mapping(), share, by_retrieval])
    rng = np.random.default_rng(zlib.crc32(settings.encode()))

    def unit(count: int) -> np.ndarray:
        vectors = rng.normal(size=(count, config.towers.dimension))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    tau = rng.uniform(0.05, 0.3, len(data.queries)).astype(np.float32)
    return {
        "items": unit(len(data.item_ids)),
        "vectors": unit(len(data.queries)),
        "tau": np.full_like(tau, 0.1) if config.loss.family in _CONSTANT_TAU else tau,
        "steps": 0,
        "loss": 0.0,
        "log_q": config.loss.log_q,
    }


def run_small(module: ModuleType, cache: Path):
    """Outputs and results of an experiment on a tiny log, with short fits.

    Towers are untrained, except those of first runs, which see a log of 300 items. Experiments that
    are given the same cache share their towers.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings_module._SPECS, "small", _SPEC)
        tiny = first_run_logs.Shape(300, 200, 3_000)
        patch.setitem(first_run_logs.SHAPES, "synthetic, 2,000 items", tiny)
        patch.setattr(towers, "train", untrained)
        patch.setattr(fitting, "MOST_STEPS", 5)
        patch.setitem(rank_quantile._TREES, "max_iter", 3)
        outputs = run_steps(module.steps(SMALL), Store(cache))
        return outputs, module.results(SMALL, outputs)


def random_towers() -> Study:
    """Untrained towers on the small log: unit vectors of eight numbers, tau from .05 to .3."""
    data = small_corpus()
    found = untrained(data, data.config)
    queries = QueryVectors(found["vectors"], found["tau"], data.strata)
    return Study(data, data.config, found["items"], queries)


def clicked_in(towers: Study, split: str) -> dict[int, set[int]]:
    """Items by query that were clicked in a split, row by row."""
    place = ("train", "calibrate", "test").index(split)
    found: dict[int, set[int]] = {}
    data = towers.corpus
    for query, item, of_split in zip(data.query, data.item, data.split, strict=True):
        if of_split == place:
            found.setdefault(int(query), set()).add(int(item))
    return dict(sorted(found.items()))

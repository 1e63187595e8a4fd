"""One first run: towers by defaults, their cut-off, and the verdict of the gates."""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.corpora import Corpus, prepared
from experiments.first_run_logs import ClickLog
from experiments.study import SOURCES as STUDY_SOURCES
from experiments.towers import SOURCES as TOWER_SOURCES
from experiments.towers import train
from pebr_tf.config import Config
from pebr_tf.cutoff.calibration import FOLDS, Calibration, calibrate
from pebr_tf.cutoff.candidates import (
    Candidates,
    ClickedPairs,
    QueryVectors,
    candidate_depth,
    collect_candidates,
)
from pebr_tf.cutoff.evaluation import KnobEvaluation, evaluate_policies, own_gain
from pebr_tf.cutoff.level_temperature import level_temperatures_for, tune_level_temperature
from pebr_tf.cutoff.policies.registry import evaluated_policies, served_policy
from pebr_tf.cutoff.tower_trial import trial_training
from pebr_tf.data.automatic import VOCABULARY_SIZE, resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.metrics.significance import noise
from pebr_tf.models.two_tower import family_of
from pebr_tf.release.evaluation import DataSummary, IndexResult, ModelEvaluation, ModelSummary
from pebr_tf.release.gates import check_gates, failures

SOURCES = (
    *STUDY_SOURCES,
    *TOWER_SOURCES,
    "pebr_tf.release.gates",
    "experiments.first_run_logs",
    "experiments.first_run_measured",
)
# What is done to the vectors of the items; a release of any of them must not be blessed.
BROKEN = ("shuffled items", "collapsed items", "the index of other towers")


def measure_first_run(log: ClickLog, seed: int) -> dict[str, Any]:
    """Trains, calibrates and evaluates as the pipeline does, without Beam, index and files.

    Returns:
      `sound`: figures of the towers, see `_figures`; `broken`: the reasons for which each kind of
      broken towers is rejected, empty if it is blessed.
    """
    given = log.config.replace_all(
        {"features.vocabulary_size": VOCABULARY_SIZE, "training.seed": seed, "split.seed": seed}
    )
    data = prepared("first run", given, log.clicks, log.catalogue)
    config = resolve(given, _size(data))
    towers = train(data, config)
    again = config.replace_all({"training.seed": seed + 1, "loss.log_q": towers["log_q"]})
    other = train(data, replace(again, training=trial_training(again.training)))
    queries = QueryVectors(towers["vectors"], towers["tau"], data.strata)
    generator = np.random.default_rng(seed)
    items = towers["items"]
    collapsed = items[:1] + 1e-3 * generator.normal(size=items.shape).astype(np.float32)
    collapsed /= np.linalg.norm(collapsed, axis=1, keepdims=True)
    broken = dict(
        zip(BROKEN, (generator.permutation(items), collapsed, other["items"]), strict=True)
    )
    return {
        "size": vars(_size(data)),
        "log_q": towers["log_q"],
        "sound": _figures(data, config, queries, items),
        "broken": {
            name: _figures(data, config, queries, vectors)["failed"]
            for name, vectors in broken.items()
        },
    }


def _size(data: Corpus) -> LogSize:
    rows = data.rows("train")
    return LogSize(len(rows), len(np.unique(data.query[rows])), len(data.item_ids))


def _figures(
    data: Corpus, config: Config, queries: QueryVectors, items: np.ndarray
) -> dict[str, Any]:
    """The verdict, and the served default against top k.

    Returns:
      `policy`, `failed` and `warned` gates; `asked` and `measured` recall, `within` its interval;
      `items` per query; `recall` and `precision`: gain over top k at this average, with `worse` if
      it is significantly below 0.
    """
    settings, average_k = config.cutoff, config.evaluation.average_k
    family = family_of(config.loss)
    calibrating, testing = (data.pairs(split) for split in ("calibrate", "test"))
    folds = 0
    if len(np.unique(calibrating.rows)) < settings.min_calibration_queries:
        folds = FOLDS
        both = (calibrating, testing)
        calibrating = testing = ClickedPairs(
            *(np.concatenate([getattr(each, name) for each in both]) for name in ("rows", "items"))
        )

    def candidates(pairs: ClickedPairs, level_temperatures: tuple[float, ...]) -> Candidates:
        rows, places = np.unique(pairs.rows, return_inverse=True)
        depth = candidate_depth(len(rows), len(items), average_k, settings.limit)
        relevant = ClickedPairs(places, pairs.items)
        part = queries.part(rows)
        return collect_candidates(items, part, relevant, family, level_temperatures, depth)

    fitted = candidates(calibrating, level_temperatures_for(settings.level_temperature))
    tuning = tune_level_temperature(fitted, average_k, settings.level_temperature)
    temperature = tuning.level_temperature
    name = "level" if tuning.beats_top_k else "top_k"
    policy = served_policy(name, settings, family, temperature)
    calibration = calibrate(
        policy.lists(fitted),
        fitted.queries.strata,
        name,
        family,
        temperature,
        settings,
        average_k,
        folds=folds,
    )
    test = candidates(testing, tuple(sorted({temperature, 1.0})))
    relevant = ClickedPairs(np.unique(testing.rows, return_inverse=True)[1], testing.items)
    knobs = KnobEvaluation(calibration, test, settings)
    evaluation = _evaluation(knobs, calibration, test, average_k)
    gain = own_gain(test, items, relevant, min(average_k))
    exact = np.ones((len(test), 2))
    gates = check_gates(
        evaluation, knobs.evidence(evaluation.middle_k, gain, exact), config.evaluation.gates
    )
    return {
        "policy": name,
        "level_temperature": temperature,
        "failed": failures(gates),
        "warned": failures(gates, "undecided"),
        **_served(knobs, calibration),
    }


def _evaluation(
    knobs: KnobEvaluation, calibration: Calibration, test: Candidates, average_k: tuple[int, ...]
) -> ModelEvaluation:
    policies = evaluated_policies(calibration.level_temperature)
    default = knobs.policy.name
    queries = len(test)
    return ModelEvaluation(
        model=ModelSummary("", calibration.family, 0, 0, calibration.policy, 0.0),
        data=DataSummary(test.corpus_size, 0, calibration.queries, queries, queries, {}, None),
        average_k=list(average_k),
        policies=evaluate_policies(policies, test, average_k, default, calibration.offsets),
        unseen=[],
        calibration=knobs.calibration_result(),
        default_knob=knobs.default_knob(),
        budget=knobs.budget(average_k),
        counts=knobs.histogram(),
        examples=[],
        index=IndexResult("exact", test.corpus_size, 1.0, 1.0, queries),
        latency=[],
    )


def _served(knobs: KnobEvaluation, calibration: Calibration) -> dict[str, Any]:
    """The served default on test queries, beside top k with as many items."""
    lists, counts = knobs.lists, knobs.counts
    ours = lists.shares(counts)
    equal = np.full(len(counts), max(round(float(counts.mean())), 1))
    theirs = lists.shares(np.minimum(equal, lists.lengths))
    low, high = calibration.interval(calibration.default_value)
    measured = float(ours[1].mean())
    # The test queries are a sample, too.
    slack = float(1.96 * ours[1].std() / np.sqrt(len(counts)))
    half = (high - low) / 2
    within = abs(measured - calibration.default_value) <= np.hypot(half, slack) + 0.005
    found: dict[str, Any] = {
        "asked": calibration.default_value,
        "measured": measured,
        "within": bool(within),
        "items": float(counts.mean()),
        "queries": len(counts),
    }
    for name, mine, base in zip(("precision", "recall"), ours, theirs, strict=True):
        gain = mine - base
        found[name] = {
            "ours": float(mine.mean()),
            "top_k": float(base.mean()),
            "worse": bool(gain.mean() < -noise(gain)),
        }
    return found

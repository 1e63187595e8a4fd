"""One first run: towers by defaults, their cut-off, and the verdict of the gates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from pebr_tf.cutoff.level_temperature import (
    deciding_queries,
    level_temperatures_for,
    tune_policy,
)
from pebr_tf.cutoff.policies.plain import TopKPolicy
from pebr_tf.cutoff.policies.registry import served_policy
from pebr_tf.data.automatic import VOCABULARY_SIZE, resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.metrics.significance import noise
from pebr_tf.models.two_tower import family_of
from pebr_tf.release.evaluation import (
    DataSummary,
    GateResult,
    IndexResult,
    ModelEvaluation,
    ModelSummary,
)
from pebr_tf.release.gates import check_gates, failures

SOURCES = (
    *STUDY_SOURCES,
    *TOWER_SOURCES,
    "pebr_tf.release.gates",
    "experiments.first_run_logs",
    "experiments.first_run_measured",
)
# Of the training of other towers.
OTHER_STEPS = 50
# What is done to the vectors of the items; a release of any of them must not be blessed.
BROKEN = ("shuffled items", "collapsed items", "the index of other towers")


@dataclass(frozen=True)
class _Release:
    """What the pipeline makes of towers, and the verdict of the gates."""

    calibration: Calibration
    knobs: KnobEvaluation
    gates: list[GateResult]


def measure_first_run(log: ClickLog, seed: int) -> dict[str, Any]:
    """Trains, calibrates and evaluates as the pipeline does, without Beam, index and files.

    Returns:
      `sound`: figures of the towers, see `_figures`; `broken`: the reasons for which each kind of
      broken towers is rejected, empty if it is blessed.
    """
    given = log.guessed_config().replace_all(
        {"features.vocabulary_size": VOCABULARY_SIZE, "training.seed": seed, "split.seed": seed}
    )
    data = prepared("first run", given, log.clicks, log.catalogue)
    config = resolve(given, _size(data))
    towers = train(data, config, by_retrieval=True)
    again = config.replace_all({"training.seed": seed + 1, "loss.log_q": towers["log_q"]})
    other = train(data, replace(again, training=replace(again.training, steps=OTHER_STEPS)))
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
        "steps": towers["steps"],
        "sound": _figures(_released(data, config, queries, items), config.evaluation.average_k),
        "broken": {
            name: failures(_released(data, config, queries, vectors).gates)
            for name, vectors in broken.items()
        },
    }


def _size(data: Corpus) -> LogSize:
    rows = data.rows("train")
    return LogSize(len(rows), len(np.unique(data.query[rows])), len(data.item_ids))


def _released(data: Corpus, config: Config, queries: QueryVectors, items: np.ndarray) -> _Release:
    settings, average_k = config.cutoff, config.evaluation.average_k
    family = family_of(config.loss)
    calibrating, testing = (data.pairs(split) for split in ("calibrate", "test"))
    calibrates, folds = np.unique(calibrating.rows), 0
    if len(calibrates) < settings.min_calibration_queries:
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
    deciding = deciding_queries(np.isin(np.unique(calibrating.rows), calibrates))
    tuning, name = tune_policy(fitted.part(deciding), average_k, settings)
    temperature = tuning.level_temperature
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
    test = fitted if folds else candidates(testing, (temperature,))
    knobs = KnobEvaluation(calibration, test, settings)
    evaluation = _evaluation(knobs, calibration, test, average_k)
    relevant = ClickedPairs(np.unique(testing.rows, return_inverse=True)[1], testing.items)
    gain = own_gain(test, items, relevant, min(average_k))
    evidence = knobs.evidence(evaluation.middle_k, gain, np.ones((len(test), 2)))
    return _Release(calibration, knobs, check_gates(evaluation, evidence, config.evaluation.gates))


def _evaluation(
    knobs: KnobEvaluation, calibration: Calibration, test: Candidates, average_k: tuple[int, ...]
) -> ModelEvaluation:
    policies = {policy.name: policy for policy in (knobs.policy, TopKPolicy())}
    default = knobs.policy.name
    queries = len(test)
    return ModelEvaluation(
        model=ModelSummary("", False, calibration.family, 0, 0, calibration.policy, 0.0),
        data=DataSummary(test.corpus_size, 0, calibration.queries, queries, queries, {}, None),
        average_k=list(average_k),
        policies=evaluate_policies(
            list(policies.values()), test, average_k, default, calibration.offsets
        ),
        unseen=[],
        calibration=knobs.calibration_result(),
        default_knob=knobs.default_knob(),
        budget=knobs.budget(average_k),
        counts=knobs.histogram(),
        examples=[],
        index=IndexResult("exact", test.corpus_size, 1.0, 1.0, queries),
        latency=[],
    )


def _figures(release: _Release, average_k: Sequence[int]) -> dict[str, Any]:
    """What is served, on test queries.

    Returns:
      `policy`, `folds`; `failed` and `warned` gates; `asked` and `measured` recall, and whether the
      difference is `within` the stated interval and the error of the test queries; `items` per
      query; `queries`; `at`: "default" or an average to the figures of `_beside_top_k`.
    """
    calibration, knobs = release.calibration, release.knobs
    lists, counts = knobs.lists, knobs.counts
    at = {"default": counts}
    at |= {str(k): lists.counts_at(lists.cutoff_at(k)) for k in average_k}
    recalls = lists.shares(counts)[1]
    asked, measured = calibration.default_value, float(recalls.mean())
    low, high = calibration.interval(asked)
    stated = high - asked if measured > asked else asked - low
    error = 1.96 * recalls.std() / np.sqrt(len(recalls))
    return {
        "policy": calibration.policy,
        "level_temperature": calibration.level_temperature,
        "folds": calibration.folds,
        "failed": failures(release.gates),
        "warned": failures(release.gates, "undecided"),
        "asked": asked,
        "measured": measured,
        "within": bool(abs(measured - asked) <= np.hypot(stated, error)),
        "items": float(counts.mean()),
        "queries": len(counts),
        "at": {name: _beside_top_k(lists, each) for name, each in at.items()},
    }


def _beside_top_k(lists: RankedLists, counts: np.ndarray) -> dict[str, Any]:
    """Precision and recall of lists of `counts` [Q] items, beside top k at the same average.

    Between two whole numbers, some queries get one item more: the means are linear. `worse` tells
    whether ours is significantly lower.
    """
    average = float(counts.mean())
    fewer, more = (
        lists.shares(np.minimum(int(average) + extra, lists.lengths)) for extra in (0, 1)
    )
    found: dict[str, Any] = {"items": average}
    for name, ours, low, high in zip(
        ("precision", "recall"), lists.shares(counts), fewer, more, strict=True
    ):
        top_k = low + (average % 1) * (high - low)
        gain = ours - top_k
        found[name] = {
            "ours": float(ours.mean()),
            "top_k": float(top_k.mean()),
            "worse": bool(gain.mean() < -noise(gain)),
        }
    return found

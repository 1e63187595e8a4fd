"""Expected and measured recall of the recall knob, before and after calibration; its guarantee."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.calibration_measured import (
    CALIBRATED,
    REQUESTED,
    SOURCES,
    WAYS,
    measure,
)
from experiments.calibration_plots import plots_of
from experiments.coverage import ERRORS, Coverage
from experiments.results import ExperimentResults, ResultTable
from experiments.settings import ExperimentSettings
from experiments.step import Step
from experiments.study import study
from experiments.towers import tower_step
from pebr_tf.report.formats import DASH, change, share

TITLE = "Expected and measured recall of the recall knob"
# Mean absolute errors on test queries that a calibrated knob must not exceed.
BAR, STRATUM_BAR = 0.02, 0.04
_DRAWS = {"full": 200, "small": 40}


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """What each data set and seed keeps."""
    draws = _DRAWS[settings.scale]
    wanted = {}
    for dataset in settings.datasets:
        mapping = settings.config(dataset).to_mapping()
        config = {section: mapping[section] for section in ("cutoff", "evaluation", "loss")}
        for seed in range(settings.seeds):
            wanted[f"{dataset}/{seed}"] = Step(
                title=f"{dataset}, seed {seed}: what the recall knob keeps",
                key={"experiment": "calibration", "config": config, "draws": draws},
                sources=SOURCES,
                compute=lambda result, dataset=dataset: measure(
                    study(settings, dataset, result), draws
                ),
                needs=(tower_step(settings, dataset, {}, seed),),
                cost=60 if settings.scale == "full" else 4,
            )
    return wanted


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and plots of what is kept."""
    figures: dict[str, Any] = {
        "requested": list(REQUESTED),
        "seeds": settings.seeds,
        "draws": _DRAWS[settings.scale],
        "bars": {"overall": BAR, "stratum": STRATUM_BAR},
    }
    errors, kept, covered, plots, summary = [], [], [], [], []
    for dataset in settings.datasets:
        runs = [outputs[f"{dataset}/{seed}"] for seed in range(settings.seeds)]
        found = _figures(runs)
        figures[dataset] = found
        summary.append(_summary(dataset, found, figures["draws"]))
        errors.append(_errors(dataset, found, settings.seeds))
        kept.append(_kept(dataset, found))
        covered.append(_covered(dataset, found["coverage"], figures["draws"]))
        plots += plots_of(dataset, found)
    if settings.goodbooks is None:
        summary.append("Only the synthetic logs were measured.")
    return ExperimentResults(
        TITLE, tuple(summary), figures, (*errors, *kept, *covered), tuple(plots)
    )


def _figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """All of one data set, over seeds."""
    groups = runs[0]["queries"]
    return {
        "ways": {
            way: {
                **{name: reliability(way, name, runs) for name in groups},
                "average": np.mean([run["average"][way] for run in runs], axis=0),
            }
            for way in WAYS
        },
        "coverage": {name: _coverage(name, runs) for name in runs[0]["coverage"]},
        "queries": groups,
        "level_temperature": [run["level_temperature"] for run in runs],
        "depth": runs[0]["depth"],
    }


def reliability(way: str, name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What a way keeps of the queries of a group: [K] means over seeds, and errors of each seed."""
    recall, expected = (
        np.array([run[part][way][name] for run in runs]) for part in ("recall", "expected")
    )
    error = np.abs(recall - expected).mean(axis=1)
    bar = BAR if name == "overall" else STRATUM_BAR
    return {
        "recall": recall.mean(axis=0),
        # Seeds are a sample of all trainings; one alone shows no spread.
        "deviation": recall.std(axis=0, ddof=min(1, len(runs) - 1)),
        "expected": expected.mean(axis=0),
        "error": error,
        "error_to_requested": np.abs(recall - np.array(REQUESTED)).mean(axis=1),
        "bar": bar,
        "passed": bool(error.mean() <= bar),
    }


def _coverage(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Draws of a group over seeds. Seeds share their halves, so each draw is their mean."""
    parts = [run["coverage"][name] for run in runs]
    requested = np.array(REQUESTED)
    reached = np.all([part["reached"] for part in parts], axis=0)
    each = Coverage(
        requested, np.mean([part["recall"] for part in parts], axis=0), reached, parts[0]["queries"]
    )
    pooled = np.concatenate([part["recall"] for part in parts])
    return {
        "mean": each.mean - requested,
        "standard_error": each.standard_error,
        "p5": np.percentile(pooled, 5, axis=0) - requested,
        "p95": np.percentile(pooled, 95, axis=0) - requested,
        "reached": reached,
        "holds": each.holds,
        # Of one seed, as the errors are.
        "chance": Coverage(requested, pooled, reached, each.queries).chance,
        "queries": each.queries,
    }


def _summary(dataset: str, found: dict[str, Any], draws: int) -> str:
    def errors(way: str) -> str:
        strata = [name for name in found["queries"] if name != "overall"]
        told = {name: share(found["ways"][way][name]["error"].mean()) for name in found["queries"]}
        return f"{told['overall']} ({', '.join(f'{name} {told[name]}' for name in strata)})"

    passed = [found["ways"]["level"][name]["passed"] for name in found["queries"]]
    shares, reached, broken = _held(found["coverage"])
    return (
        f"{dataset}: the measured recall differs from the expected recall by {errors('level')} "
        f"as served; with one map for all by {errors('level_one_map')}, by the raw softmax mass by "
        f"{errors('nucleus')}, by literal pEBR by {errors('cdf')}. "
        f"{'All' if all(passed) else 'Not all'} errors as served are within the bars, {BAR:g} "
        f"overall and {STRATUM_BAR:g} per stratum. Over {draws} random halves the mean kept is at "
        f"least what was asked for at {reached} of {shares} shares, overall and by stratum, and "
        f"below by more than chance at {broken}."
    )


def _held(found: dict[str, Any]) -> tuple[int, int, int]:
    """Shares that can be reached; those whose mean is reached; those below by more than chance."""
    means, holds = (
        np.concatenate([np.array(each[part])[each["reached"]] for each in found.values()])
        for part in ("mean", "holds")
    )
    return len(means), int((means >= 0).sum()), int((~holds).sum())


def _errors(dataset: str, found: dict[str, Any], seeds: int) -> ResultTable:
    def deviation(values: np.ndarray) -> str:
        return share(values.std(ddof=1)) if seeds > 1 else DASH

    rows = []
    for way, title in reversed(WAYS.items()):
        for name in found["queries"]:
            each = found["ways"][way][name]
            within = int((each["error"] <= each["bar"]).sum())
            calibrated = way in CALIBRATED and name in found["coverage"]
            rows.append(
                (
                    f"{title}: {_group(name)}",
                    share(each["error"].mean()),
                    deviation(each["error"]),
                    share(each["error_to_requested"].mean()),
                    deviation(each["error_to_requested"]),
                    share(found["coverage"][name]["chance"]) if calibrated else DASH,
                    f"{each['bar']:.2f}",
                    f"{'yes' if each['passed'] else '**no**'}, {within} of {seeds}",
                )
            )
    return ResultTable(
        f"{dataset}: error of the recall knob on test queries",
        ("way: queries", "error", "sd", "to asked", "sd", "chance", "bar", "within, seeds"),
        tuple(rows),
        "Mean absolute difference, over shares from .5 to .95, of what is kept of the held-out "
        "clicks and what was expected, then of what is kept and what was asked for, which no list "
        "may be long enough for; standard deviation over seeds. Chance: the same error between "
        "random halves of the held-out queries, one of which made the map; so much comes of having "
        "no more queries. The mean over seeds must be within the bar.",
    )


def _kept(dataset: str, found: dict[str, Any]) -> ResultTable:
    rows = []
    for name in found["queries"]:
        expected = found["ways"]["level"][name]["expected"]
        rows.append((f"{_group(name)}: expected as served", *map(_short, expected)))
        for way, title in reversed(WAYS.items()):
            recall = found["ways"][way][name]["recall"]
            rows.append((f"{_group(name)}: {title}", *map(_short, recall)))
    return ResultTable(
        f"{dataset}: share of the held-out clicks kept, by share asked for",
        ("queries: way", *(f"{requested:g}".removeprefix("0") for requested in REQUESTED)),
        tuple(rows),
        "Literal pEBR ends a list where the query's own law says that P(x >= t) is the share; the "
        "softmax mass where the items so far have that share of the softmax over the corpus.",
    )


def _covered(dataset: str, found: dict[str, Any], draws: int) -> ResultTable:
    def cells(each: dict[str, Any], part: str) -> tuple[str, ...]:
        return tuple(
            # Adding 0 takes the sign off a 0.
            change(f"{round(value, 4) + 0.0:.4f}") if reached else DASH
            for value, reached in zip(each[part], each["reached"], strict=True)
        )

    rows: list[tuple[str, ...]] = []
    for name, each in found.items():
        rows.append((f"{_group(name)}: mean", *cells(each, "mean")))
        rows += [(f"{_group(name)}: {part[1:]}%", *cells(each, part)) for part in ("p5", "p95")]
    error = max(float(np.max(each["standard_error"])) for each in found.values())
    return ResultTable(
        f"{dataset}: share kept less share asked for, over random halves",
        ("queries", *(f"{requested:g}".removeprefix("0") for requested in REQUESTED)),
        tuple(rows),
        f"{draws} draws of the queries of both held-out splits: one half makes the map, the other "
        "is measured. The level temperature of the level is that of the calibrate split, so it "
        "has seen half of the queries. Conformal risk control guarantees a mean of at least 0; the "
        "standard error "
        f"of a mean is at most {error:.4f} here, and {_held(found)[2]} are below 0 by more than "
        f"{ERRORS:g} of them. A dash is a share that some half cannot reach.",
    )


def _group(name: str) -> str:
    return "all" if name == "overall" else name


def _short(value: float) -> str:
    return share(value).removeprefix("0")

"""How many items queries get, by the share kept and by stratum (the paper's Table 2 and figure)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.cutoffs_measured import POLICIES, RECALLS, SHOWN, SOURCES, measure
from experiments.cutoffs_plots import plots_of
from experiments.results import ExperimentResults, ResultTable
from experiments.settings import ExperimentSettings
from experiments.step import Step
from experiments.study import study
from experiments.towers import tower_step
from pebr_tf.metrics.comparison import groups_of
from pebr_tf.metrics.strata import STRATA
from pebr_tf.report.formats import average, count
from pebr_tf.report.formats import share as whole_share

TITLE = "Retrieved items by share kept and query frequency"
# Above this share of lists cut for lack of candidates, lengths are not compared.
_MOST_TRUNCATED = 0.5
_PERCENTILES = (10, 50, 90, 99)
# The paper's Table 2, from its own logs.
_PAPER = {
    "head": (2253.12, 1443.51, 1073.79, 761.06, 600.31, 441.51, 227.42, 66.36),
    "torso": (1897.53, 961.90, 617.27, 334.10, 200.17, 111.28, 48.37, 12.89),
    "tail": (1804.80, 813.24, 473.40, 215.50, 113.99, 58.86, 21.46, 4.60),
}


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The counts of each data set and seed."""
    wanted = {}
    for dataset in settings.datasets:
        for seed in range(settings.seeds):
            towers = tower_step(settings, dataset, {}, seed)
            wanted[f"{dataset}/{seed}"] = Step(
                title=f"{dataset}, seed {seed}: retrieved items",
                key={"experiment": "cutoffs", "config": _measured_with(settings, dataset)},
                sources=SOURCES,
                compute=lambda result, dataset=dataset: measure(study(settings, dataset, result)),
                needs=(towers,),
                cost=20 if settings.scale == "full" else 3,
            )
    return wanted


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and plots of the counts."""
    figures: dict[str, Any] = {"keeps": list(RECALLS), "seeds": settings.seeds, "paper": _PAPER}
    averages, kept, spread, plots, summary = [], [], [], [], []
    for dataset in settings.datasets:
        runs = [outputs[f"{dataset}/{seed}"] for seed in range(settings.seeds)]
        found = {policy: _figures(policy, runs) for policy in POLICIES}
        figures[dataset] = {
            "policies": found,
            "expected": _mean([run["expected"] for run in runs]),
            "literal_at_equal_average": _equal(runs),
            "level_temperature": [run["level_temperature"] for run in runs],
            "queries": {name: int(m.sum()) for name, m in groups_of(runs[0]["strata"]).items()},
            "depth": runs[0]["depth"],
        }
        summary.append(_summary(dataset, found))
        averages.append(_averages(dataset, found, settings.seeds))
        kept.append(_kept(dataset, figures[dataset]))
        spread.append(_spread(dataset, found))
        plots += plots_of(dataset, found, runs)
    if settings.goodbooks is None:
        summary.append("Only the synthetic logs were measured.")
    tables = (*averages, *kept, *spread, _paper_table())
    return ExperimentResults(TITLE, tuple(summary), figures, tables, tuple(plots))


def _measured_with(settings: ExperimentSettings, dataset: str) -> dict[str, Any]:
    mapping = settings.config(dataset).to_mapping()
    return {section: mapping[section] for section in ("cutoff", "evaluation", "loss")}


def _figures(policy: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of one policy by group, over seeds; whether they are in order."""
    groups = groups_of(runs[0]["strata"])
    means = {
        name: np.array([run["counts"][policy][:, mask].mean(axis=1) for run in runs])
        for name, mask in groups.items()
    }
    pooled = {
        name: np.concatenate([run["counts"][policy][:, mask] for run in runs], axis=1)
        for name, mask in groups.items()
    }
    strata = [means[name].mean(axis=0) for name in STRATA if name in means]
    truncated = _mean([run["truncated"][policy] for run in runs])
    # Seeds are a sample of all trainings; one alone shows no spread.
    freedom = min(1, len(runs) - 1)
    return {
        "average": {name: each.mean(axis=0) for name, each in means.items()},
        "deviation": {name: each.std(axis=0, ddof=freedom) for name, each in means.items()},
        "percentiles": {
            name: {
                f"p{percent}": np.percentile(each, percent, axis=1, method="lower")
                for percent in _PERCENTILES
            }
            for name, each in pooled.items()
        },
        "empty": {name: (each == 0).mean(axis=1) for name, each in pooled.items()},
        "recall": _mean([run["recall"][policy] for run in runs]),
        "truncated": truncated,
        # The shares fall, so the counts must not rise.
        "monotone": all(bool((np.diff(each, axis=0) <= 0).all()) for each in pooled.values()),
        "ordered": [
            bool((np.diff(at_share) < 0).all()) if share <= _MOST_TRUNCATED else None
            for at_share, share in zip(np.transpose(strata), truncated, strict=True)
        ],
    }


def _equal(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Literal pEBR at the average of the level where SHOWN is asked for."""
    groups = groups_of(runs[0]["strata"])
    return {
        "dropped": [run["equal_dropped"] for run in runs],
        "average": {
            name: float(np.mean([run["equal_counts"][mask].mean() for run in runs]))
            for name, mask in groups.items()
        },
    }


def _mean(rows: list[Any]) -> np.ndarray:
    return np.mean(np.array(rows, np.float64), axis=0)


def _summary(dataset: str, found: dict[str, Any]) -> str:
    level, at = found["level"]["average"], RECALLS.index(SHOWN)
    counts = ", ".join(f"{name} {average(level[name][at])}" for name in STRATA if name in level)
    falls = all(each["monotone"] for each in found.values())
    return (
        f"{dataset}: asked to keep {SHOWN:g}, the calibrated level gives {counts} items per query. "
        f"The more is to be kept, the more items every query gets{'' if falls else ': not always'}."
        f" Head above torso above tail: {_order(found['level'])} by the level, "
        f"{_order(found['level_one_map'])} with one cut-off for all, and {_order(found['cdf'])} by "
        "literal pEBR."
    )


def _order(found: dict[str, Any]) -> str:
    told = [each for each in found["ordered"] if each is not None]
    return f"at {sum(told)} of {len(told)} shares"


def _averages(dataset: str, found: dict[str, Any], seeds: int) -> ResultTable:
    rows = [
        (f"{POLICIES[policy]}, {'all' if name == 'overall' else name}", *map(average, each))
        for policy in POLICIES
        for name, each in found[policy]["average"].items()
    ]
    relative = max(
        float(np.nanmax(found["level"]["deviation"][name] / found["level"]["average"][name]))
        for name in found["level"]["average"]
    )
    deviation = (
        f" Their standard deviation over {seeds} seeds is at most {relative:.0%} of the level's."
    )
    return ResultTable(
        f"{dataset}: average items per query, by share kept",
        ("policy, queries", *(_plain(recall) for recall in RECALLS)),
        tuple(rows),
        "level: the recall knob as served, calibrated for each stratum. One map: the level with "
        "one cut-off for all queries, so that it alone tells them apart. Literal: pEBR by the "
        "query's own law, P(x >= t) = share, not calibrated." + (deviation if seeds > 1 else ""),
    )


def _kept(dataset: str, found: dict[str, Any]) -> ResultTable:
    rows = [("expected by the calibration", *map(_share, found["expected"]))]
    for policy in POLICIES:
        each = found["policies"][policy]
        rows.append((f"{POLICIES[policy]}, kept", *map(_share, each["recall"])))
    for policy in POLICIES:
        each = found["policies"][policy]
        rows.append((f"{POLICIES[policy]}, empty lists", *map(_share, each["empty"]["overall"])))
    return ResultTable(
        f"{dataset}: share of the held-out clicks that the lists keep",
        ("", *(_plain(recall) for recall in RECALLS)),
        tuple(rows),
        f"Lists look {count(found['depth'])} items deep at most. Where more is asked for than the "
        "calibration can reach, they are as long as they can be, and their order says nothing.",
    )


def _spread(dataset: str, found: dict[str, Any]) -> ResultTable:
    at = RECALLS.index(SHOWN)
    rows = [
        (
            f"{POLICIES[policy]}, {'all' if name == 'overall' else name}",
            average(found[policy]["average"][name][at]),
            *(count(each[at]) for each in percentiles.values()),
        )
        for policy in POLICIES
        for name, percentiles in found[policy]["percentiles"].items()
    ]
    return ResultTable(
        f"{dataset}: items per query where {SHOWN:g} is asked for",
        ("policy, queries", "average", *(f"p{percent}" for percent in _PERCENTILES)),
        tuple(rows),
    )


def _paper_table() -> ResultTable:
    return ResultTable(
        "The paper's Table 2, from its own logs",
        ("queries", *(_plain(recall) for recall in RECALLS)),
        tuple((name, *map(average, row)) for name, row in _PAPER.items()),
        "Average numbers of retrieved items for different cut-off CDF values.",
    )


def _plain(recall: float) -> str:
    return f"{recall:g}".removeprefix("0")


def _share(value: float) -> str:
    return whole_share(value).removeprefix("0")

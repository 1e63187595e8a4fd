"""What a new user gets from a first run with defaults, on many click logs."""

from collections.abc import Mapping
from typing import Any

from experiments.first_run_logs import logs_of
from experiments.first_run_measured import BROKEN, SOURCES, measure_first_run
from experiments.results import ExperimentResults, ResultTable
from experiments.settings import ExperimentSettings
from experiments.step import Step
from pebr_tf.report.formats import share

TITLE = "What does a first run with defaults give?"
# Logs that a look is enough for.
_SMALL = ("synthetic, 2,000 items",)


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """One first run of each log and seed."""
    logs = logs_of(settings.goodbooks, settings.dbpedia)
    if settings.scale == "small":
        logs = {name: logs[name] for name in _SMALL}
    return {
        f"{name}/{seed}": Step(
            title=f"{name}, seed {seed}: first run",
            key={"experiment": "first_run", "log": name, "seed": seed},
            sources=SOURCES,
            compute=lambda make=make, seed=seed: measure_first_run(make(seed), seed),
            cost=60,
        )
        for name, make in logs.items()
        for seed in range(settings.seeds)
    }


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """A row for each log, and a row for each run that was not blessed."""
    names = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in outputs))
    runs = {name: [outputs[f"{name}/{seed}"] for seed in range(settings.seeds)] for name in names}
    every = [run for some in runs.values() for run in some]
    sound = [run["sound"] for run in every]
    rejected = sum(bool(each["failed"]) for each in sound)
    outside = sum(not each["within"] for each in sound)
    worse = {
        measure: sum(each[measure]["worse"] for each in sound)
        for measure in ("recall", "precision")
    }
    blessed = {kind: sum(not run["broken"][kind] for run in every) for kind in BROKEN}
    total = len(every)
    summary = (
        f"Of {total} first runs {total - rejected} are blessed. The served recall is outside its "
        f"interval in {outside}. At an equal average the served lists are significantly worse "
        f"than top k in recall in {worse['recall']} and in precision in {worse['precision']}.",
        "Blessed by mistake, of as many runs each: "
        + ", ".join(f"{kind} {count}" for kind, count in blessed.items())
        + ".",
    )
    rejections = tuple(
        (key, " ".join(output["sound"]["failed"]))
        for key, output in outputs.items()
        if output["sound"]["failed"]
    )
    tables = [_table(runs)]
    if rejections:
        tables.append(ResultTable("Runs that were not blessed", ("run", "reason"), rejections))
    figures = {"seeds": settings.seeds, "runs": dict(outputs), "blessed by mistake": blessed}
    return ExperimentResults(TITLE, summary, figures, tuple(tables), ())


def _table(runs: Mapping[str, list[dict[str, Any]]]) -> ResultTable:
    def mean(sound: list[dict[str, Any]], *path: str) -> float:
        values = []
        for each in sound:
            value: Any = each
            for key in path:
                value = value[key]
            values.append(float(value))
        return sum(values) / len(values)

    rows = []
    for name, some in runs.items():
        sound = [run["sound"] for run in some]
        rows.append(
            (
                name,
                f"{sum(not each['failed'] for each in sound)} of {len(sound)}",
                "/".join(dict.fromkeys(each["policy"] for each in sound)),
                f"{sum(run['log_q'] for run in some)} of {len(some)}",
                f"{mean(sound, 'queries'):,.0f}",
                share(mean(sound, "asked")),
                share(mean(sound, "measured")),
                f"{mean(sound, 'items'):,.0f}",
                share(mean(sound, "recall", "top_k")),
                share(mean(sound, "precision", "ours")),
                share(mean(sound, "precision", "top_k")),
            )
        )
    return ResultTable(
        "First runs with defaults",
        (
            *(
                "log",
                "blessed",
                "policy",
                "log_q",
                "test queries",
                "recall asked",
                "recall",
                "items",
            ),
            *("top k's recall", "precision", "top k's precision"),
        ),
        tuple(rows),
        "Means over seeds, of the served default on test queries; top k has as many items for "
        "every query.",
    )

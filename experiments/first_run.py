"""What a new user gets from a first run with defaults, on many click logs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.first_run_logs import logs_of
from experiments.first_run_measured import BROKEN, SOURCES, measure_first_run
from experiments.results import ExperimentResults, ResultTable
from experiments.settings import ExperimentSettings
from experiments.step import Step
from pebr_tf.report.formats import share

TITLE = "What does a first run with defaults give?"
# Logs that a look is enough for.
_SMALL = ("synthetic, 2,000 items",)
# Share of runs whose recall may be outside its 95% interval.
OUTSIDE = 0.05
_MEASURES = ("recall", "precision")
_Run = Mapping[str, Any]


class Bar(NamedTuple):
    """How many of `total` cases are as they should not be, and how many may be."""

    text: str
    found: int
    total: int
    allowed: float = 0

    @property
    def sentence(self) -> str:
        """The counts in words."""
        return f"{self.text}: {self.found} of {self.total} (at most {self.allowed:g})"


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
    """The bars, a row for each log and average, and a row for each run that was not blessed."""
    names = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in outputs))
    runs = {name: [outputs[f"{name}/{seed}"] for seed in range(settings.seeds)] for name in names}
    blessed = sum(not run["sound"]["failed"] for run in outputs.values())
    bars = bars_of(list(outputs.values()))
    missed = [bar.sentence for bar in bars if bar.found > bar.allowed]
    summary = (
        f"Of {len(outputs)} first runs {blessed} are blessed.",
        *(f"{bar.sentence}." for bar in bars),
        f"bars missed: {'; '.join(missed) or 'none'}.",
    )
    rejections = tuple(
        (key, " ".join(output["sound"]["failed"]))
        for key, output in outputs.items()
        if output["sound"]["failed"]
    )
    tables = [_table(runs), _averages(runs)]
    if rejections:
        tables.append(ResultTable("Runs that were not blessed", ("run", "reason"), rejections))
    figures = {
        "seeds": settings.seeds,
        "runs": dict(outputs),
        "bars": {bar.text: bar._asdict() for bar in bars},
    }
    return ExperimentResults(TITLE, summary, figures, tuple(tables), ())


def bars_of(runs: Sequence[_Run]) -> list[Bar]:
    """What must not happen, with how often it did."""
    sound = [run["sound"] for run in runs]
    compared = [at for each in sound for at in each["at"].values()]
    is_worse = [
        any(at[measure]["worse"] for at in each["at"].values() for measure in _MEASURES)
        for each in sound
    ]
    failed = [bool(each["failed"]) for each in sound]
    # Cross-fitted maps are fitted to the queries that test them.
    apart = [each for each in sound if not each["folds"]]
    both = list(zip(failed, is_worse, strict=True))
    return [
        Bar(
            "Runs rejected although their lists are not significantly worse than top k",
            both.count((True, False)),
            len(sound),
        ),
        Bar(
            "Runs blessed although their lists are significantly worse than top k",
            both.count((False, True)),
            len(sound),
        ),
        Bar(
            "Runs, but for cross-fitted ones, whose recall is outside its interval",
            sum(not each["within"] for each in apart),
            len(apart),
            OUTSIDE * len(apart),
        ),
        *(
            Bar(
                f"Comparisons at an equal average where {measure} is significantly below top k",
                sum(at[measure]["worse"] for at in compared),
                len(compared),
            )
            for measure in _MEASURES
        ),
        *(
            Bar(f"Blessed: {kind}", sum(not run["broken"][kind] for run in runs), len(runs))
            for kind in BROKEN
        ),
    ]


def _mean(runs: Sequence[_Run], *path: str) -> float:
    """Of a figure of the sound towers."""
    values = []
    for run in runs:
        value: Any = run["sound"]
        for key in path:
            value = value[key]
        values.append(float(value))
    return sum(values) / len(values)


def _beside(runs: Sequence[_Run], name: str) -> tuple[str, ...]:
    """Recall and precision at an average, each ours and that of top k."""
    whose = ("ours", "top_k")
    return tuple(share(_mean(runs, "at", name, each, of)) for each in _MEASURES for of in whose)


def _table(logs: Mapping[str, Sequence[_Run]]) -> ResultTable:
    rows = []
    for name, runs in logs.items():
        sound = [run["sound"] for run in runs]
        rows.append(
            (
                name,
                f"{sum(not each['failed'] for each in sound)} of {len(sound)}",
                "/".join(dict.fromkeys(each["policy"] for each in sound)),
                f"{sum(run['log_q'] for run in runs)} of {len(runs)}",
                f"{_mean(runs, 'queries'):,.0f}" + "*" * any(each["folds"] for each in sound),
                share(_mean(runs, "asked")),
                f"{sum(each['within'] for each in sound)} of {len(sound)}",
                f"{_mean(runs, 'items'):,.0f}",
                *_beside(runs, "default"),
            )
        )
    return ResultTable(
        "First runs with defaults",
        (
            *("log", "blessed", "policy", "log_q", "test queries", "recall asked", "within"),
            *("items", "recall", "top k's", "precision", "top k's"),
        ),
        tuple(rows),
        "Means over seeds, of the served default on test queries; top k has the same average. "
        "Within: runs whose recall is in its stated interval, but for the error of the test "
        "queries. *Cross-fitted: asked and measured on the same queries, which hides errors.",
    )


def _averages(logs: Mapping[str, Sequence[_Run]]) -> ResultTable:
    rows = []
    for name, runs in logs.items():
        for k in runs[0]["sound"]["at"]:
            worse = (
                sum(run["sound"]["at"][k][measure]["worse"] for run in runs)
                for measure in _MEASURES
            )
            rows.append((name, k, *_beside(runs, k), *(f"{n} of {len(runs)}" for n in worse)))
    return ResultTable(
        "Served lists and top k at equal averages",
        (
            *("log", "average", "recall", "top k's", "precision", "top k's"),
            *("recall is worse", "precision is worse"),
        ),
        tuple(rows),
        "Means over seeds, on test queries. Worse: runs where chance does not explain how far the "
        "lists are below top k, one-sided with a confidence of 95%.",
    )

"""Retrieved items of a head, a torso and a tail query on a sphere (the paper's figure).

It shows towers of seed 0 alone, however many seeds are asked for: a picture has no mean.
"""

from collections.abc import Mapping
from typing import Any

from experiments.cutoffs_measured import SHOWN
from experiments.results import ExperimentResults, ResultTable
from experiments.settings import ExperimentSettings
from experiments.spheres_measured import LEAST_CLICKS, SOURCES, measure
from experiments.spheres_plots import plot_of
from experiments.step import Step
from experiments.study import study
from experiments.towers import tower_step
from pebr_tf.report.formats import average, count
from pebr_tf.report.formats import share as whole_share

TITLE = "Retrieved items of three queries, on a sphere"
# Items that are drawn besides those of the lists, and iterations of t-SNE.
_DRAWN = {
    "full": {"background": 2_000, "iterations": 1_000},
    "small": {"background": 500, "iterations": 300},
}
_LONGEST_TITLE = 64


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The lists and points of each data set."""
    drawn = _DRAWN[settings.scale]
    wanted = {}
    for dataset in settings.datasets:
        mapping = settings.config(dataset).to_mapping()
        config = {section: mapping[section] for section in ("cutoff", "evaluation", "loss")}
        wanted[dataset] = Step(
            title=f"{dataset}, seed 0: three queries on a sphere",
            key={"experiment": "spheres", "config": config, "recall": SHOWN, **drawn},
            sources=SOURCES,
            compute=lambda result, dataset=dataset: measure(
                study(settings, dataset, result), SHOWN, **drawn
            ),
            needs=(tower_step(settings, dataset, {}, 0),),
            cost=100 if settings.scale == "full" else 6,
        )
    return wanted


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables and a plot of each data set."""
    figures: dict[str, Any] = {"asked": SHOWN, "seed": 0}
    lists, titles, plots, summary = [], [], [], []
    for dataset in settings.datasets:
        found = outputs[dataset]
        figures[dataset] = _figures(found)
        summary.append(_summary(dataset, found))
        lists.append(_lists(dataset, found))
        titles.append(_titles(dataset, found))
        plots.append(plot_of(dataset, found))
    if settings.goodbooks is None:
        summary.append("Only the synthetic logs were measured.")
    return ExperimentResults(TITLE, tuple(summary), figures, (*lists, *titles), tuple(plots))


def _figures(found: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured, without the points of all items."""
    queries = [
        {
            **{name: value for name, value in query.items() if name not in ("items", "clicked")},
            "clicks": len(query["clicked"]),
            "point": point,
        }
        for query, point in zip(found["queries"], found["query_points"], strict=True)
    ]
    return {
        "queries": queries,
        "top_k": found["top_k"],
        "average": found["average"],
        "level_temperature": found["level_temperature"],
        "items_drawn": len(found["places"]),
    }


def _summary(dataset: str, found: Mapping[str, Any]) -> str:
    level = ", ".join(
        f"{count(query['count'])} items for the {query['stratum']} query “{query['text']}”"
        for query in found["queries"]
    )
    kept = ", ".join(
        f"{query['kept']} against {query['fixed_kept']} of {len(query['clicked'])}"
        for query in found["queries"]
    )
    return (
        f"{dataset}: asked to keep {SHOWN:g}, the calibrated level gives {level}, and "
        f"{average(found['average'])} to a test query on average; top {count(found['top_k'])} "
        f"gives all of them the same. Held-out clicks that the level and top k keep: {kept}."
    )


def _lists(dataset: str, found: Mapping[str, Any]) -> ResultTable:
    rows = []
    for query in found["queries"]:
        for way, prefix, size in (("level", "", "count"), ("top k", "fixed_", "fixed")):
            kept, total = query[f"{prefix}kept"], len(query["clicked"])
            rows.append(
                (
                    f"{query['stratum']}, “{_cell(query['text'])}”, {way}",
                    count(query["frequency"]),
                    count(query[size]),
                    f"{kept} of {total}",
                    whole_share(kept / total),
                    whole_share(kept / max(query[size], 1)),
                    whole_share(query[f"{prefix}threshold"]),
                )
            )
    return ResultTable(
        f"{dataset}: the lists of the three queries",
        (
            "query, list",
            "clicks in training",
            "items",
            "held-out clicks kept",
            "share",
            "of its items clicked",
            "cosine of the last",
        ),
        tuple(rows),
        f"Of the test queries that are easy to read and have {LEAST_CLICKS} held-out clicks or "
        "more, where there are such: the head query whose number of items is nearest to the median "
        "of its stratum; the torso and the tail query from the middle fifth of theirs, and there "
        "the most alike to the one before. Towers of seed 0.",
    )


def _titles(dataset: str, found: Mapping[str, Any]) -> ResultTable:
    rows = [
        (
            f"{query['stratum']}, “{_cell(query['text'])}”",
            *(_cell(query[name]) for name in ("first", "last", "fixed_last")),
        )
        for query in found["queries"]
    ]
    return ResultTable(
        f"{dataset}: first and last items",
        ("query", "first item", "last of the level", "last of top k"),
        tuple(rows),
    )


def _cell(text: str) -> str:
    """A text of the data on one line, not too long; asterisks would be read as bold."""
    whole = " ".join(text.split()).replace("*", "∗")
    return whole if len(whole) <= _LONGEST_TITLE else whole[: _LONGEST_TITLE - 1].rstrip() + "…"

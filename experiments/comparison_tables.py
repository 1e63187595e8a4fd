"""Tables of the comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.comparison_measured import PROTOCOLS
from experiments.kinds import KINDS
from experiments.policies import (
    CorpusLawPolicy,
    DepthLawPolicy,
    FittedLawPolicy,
    RankQuantilePolicy,
)
from experiments.results import ResultTable
from experiments.seeds import (
    ORACLE,
    FiguresByPolicy,
    heads,
    mean,
    pair,
    pairs_in_bold,
    plain,
    signed,
)
from experiments.settings import ExperimentSettings
from pebr_tf.cutoff.policies.adapter import AdapterPolicy
from pebr_tf.cutoff.policies.nucleus import NucleusPolicy
from pebr_tf.cutoff.policies.oracle import OraclePolicy
from pebr_tf.cutoff.policies.plain import GapPolicy, ScorePolicy, TopKPolicy
from pebr_tf.metrics.strata import STRATA
from pebr_tf.report.formats import DASH, average

_NAMES: dict[str, str] = {
    "level": "level, T tuned",
    **{each.name: each.title for each in (DepthLawPolicy, TopKPolicy, ScorePolicy, GapPolicy)},
    "cdf": "literal pEBR, paper's convention",
    "cdf_pdf": "literal pEBR, pdf convention",
    **{each.name: each.title for each in (NucleusPolicy, AdapterPolicy, CorpusLawPolicy)},
    **{each.name: each.title for each in (FittedLawPolicy, RankQuantilePolicy, OraclePolicy)},
}
# What a reader sees, the kind of towers, and the policy.
MAIN = (
    ("DSSM, top k", "info_one", "top_k"),
    ("DSSM, one cosine", "info_one", "score"),
    ("literal pEBR, paper's convention", "beta_one", "cdf"),
    ("literal pEBR, pdf convention", "beta_one", "cdf_pdf"),
    ("literal pEBR, symmetric loss", "beta", "cdf"),
    ("top k", "beta", "top_k"),
    ("one cosine for all", "beta", "score"),
    ("gap to the best cosine", "beta", "gap"),
    ("nucleus", "beta", "nucleus"),
    ("cosine adapter", "beta", "adapter"),
    ("corpus-law CDF", "beta", "corpus_law"),
    ("fitted-law CDF", "beta", "fitted_law"),
    ("boosted rank quantile", "beta", "rank_quantile"),
    ("**level** (served)", "beta", "level"),
    ("learnt depth law", "beta", "depth_law"),
    ("oracle", "beta", ORACLE),
)
_READ = (
    "Lists have k items per query on average, whatever the policy; macro averages over the test "
    "queries, P/R; an empty list has precision 0. The best of a column is bold, but for the "
    "oracle, which knows the clicks and shares the items out for the most recall."
)


def main_table(settings: ExperimentSettings, figures: Mapping[str, Any]) -> ResultTable:
    """The table that matters: every method on both data sets."""
    columns, head = [], []
    for dataset in settings.datasets:
        found = figures[dataset]
        for k in found["averages"]:
            pairs = [pair(found["kinds"][kind], policy, k) for _, kind, policy in MAIN]
            columns.append(pairs_in_bold(pairs, [policy != ORACLE for _, _, policy in MAIN]))
            head.append(f"{dataset} k = {k:,}")
    seeds = f" Means of {settings.seeds} seeds." if settings.seeds > 1 else " One seed."
    return ResultTable(
        "Held-out clicks: precision and recall of every method",
        ("P/R", *head),
        tuple(
            (title, *(column[place] for column in columns))
            for place, (title, _, _) in enumerate(MAIN)
        ),
        f"{_READ} The first four have the paper's towers (query to item only), all others the "
        f"default towers (BetaNCE, symmetric).{seeds}",
    )


def strata_table(dataset: str, figures: Mapping[str, Any], k: int) -> ResultTable:
    """Every method at one average, overall and by stratum."""
    kinds = figures["kinds"]
    groups = ["overall", *(name for name in STRATA if name in kinds["beta"]["top_k"][str(k)])]
    columns = [
        pairs_in_bold(
            [_group_pair(kinds[kind], policy, k, group) for _, kind, policy in MAIN],
            [policy != ORACLE for _, _, policy in MAIN],
        )
        for group in groups
    ]
    items = [
        f"{group} {average(mean_items(kinds['beta']['level'][str(k)][group]))}" for group in groups
    ]
    return ResultTable(
        f"{dataset}, k = {k:,}: head, torso and tail",
        ("P/R", *groups),
        tuple(
            (title, *(column[place] for column in columns))
            for place, (title, _, _) in enumerate(MAIN)
        ),
        f"Items a query by the level: {', '.join(items)}.",
    )


def kinds_table(dataset: str, figures: Mapping[str, Any], averages: Sequence[int]) -> ResultTable:
    """Every policy on the towers of every kind."""
    rows = []
    for kind, found in figures["kinds"].items():
        names = [name for name in _NAMES if name in found]
        columns = [
            pairs_in_bold(
                [pair(found, name, k) for name in names], [name != ORACLE for name in names]
            )
            for k in averages
        ]
        rows += [
            (f"{KINDS[kind].title}: {_NAMES[name]}", *(column[place] for column in columns))
            for place, name in enumerate(names)
        ]
    level_temperatures = "; ".join(
        f"{KINDS[kind].title} {', '.join(f'{level_temperature:g}' for level_temperature in each)}"
        for kind, each in figures["level_temperature"].items()
    )
    return ResultTable(
        f"{dataset}: every policy on every kind of towers",
        ("P/R", *heads(averages)),
        tuple(rows),
        f"Held-out clicks; bold within a kind. Level temperatures of the level, by seed: "
        f"{level_temperatures}.",
    )


def protocol_table(
    dataset: str, figures: Mapping[str, Any], protocol: str, averages: Sequence[int]
) -> ResultTable:
    """The default towers against another truth."""
    found = figures["protocols"][protocol]
    names = [name for name in _NAMES if name in found]
    columns = [
        pairs_in_bold([pair(found, name, k) for name in names], [name != ORACLE for name in names])
        for k in averages
    ]
    notes = {
        "unseen": "Training pairs are neither candidates nor relevant; everything that is tuned "
        "or fitted was so without them, too.",
        "real": "Clicks that fell on any item by chance do not count as relevant. Policies as "
        "they were fitted, to clicks with noise.",
        "truth": "All items that match the query are relevant, training pairs included, which "
        "flatters lists that end early. Policies as they were fitted, to clicks.",
    }
    return ResultTable(
        f"{dataset}: {PROTOCOLS[protocol]}",
        ("P/R", *heads(averages)),
        tuple(
            (_NAMES[name], *(column[place] for column in columns))
            for place, name in enumerate(names)
        ),
        notes[protocol],
    )


def significance_table(
    dataset: str, figures: Mapping[str, Any], averages: Sequence[int]
) -> ResultTable:
    """Ours less top k, with intervals and p-values."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for entry in figures["significance"]:
        cell = (
            f"{signed(entry['difference'])} [{signed(entry['low'])}, {signed(entry['high'])}], "
            f"p {_p_value(entry['p_value'])}"
        )
        rows.setdefault((entry["ours"], entry["against"], entry["measure"]), []).append(cell)
    against = {"beta": "top k, same towers", "info_one": "DSSM, top k"}
    return ResultTable(
        f"{dataset}: ours less top k, paired bootstrap over queries",
        ("", *heads(averages)),
        tuple(
            (f"{_NAMES[ours].split(',')[0]} less {against[kind]}, {measure}", *cells)
            for (ours, kind, measure), cells in rows.items()
        ),
        "Difference of macro averages, its 95% interval, and the one-sided p-value of no gain; "
        "queries are drawn anew 2,000 times, the differences of a query averaged over the seeds.",
    )


def own_recall_table(
    dataset: str, figures: Mapping[str, Any], averages: Sequence[int]
) -> ResultTable:
    """What the level has where it keeps as much as another policy."""
    found, own = figures["kinds"]["beta"], figures["own_recall"]
    names = [name for name in _NAMES if name in found and name not in ("level", ORACLE)]
    rows = []
    for name in names:
        cells = []
        for k in averages:
            ours = own[name][str(k)]["level"]
            theirs = f"{plain(mean(found, name, k, 'precision'))} with {k:,}"
            reached = (
                f"{plain(ours['precision'])} with {average(ours['average'])}" if ours else DASH
            )
            cells.append(f"{reached} for {theirs}")
        rows.append((_NAMES[name], *cells))
    return ResultTable(
        f"{dataset}: the level at the recall of each other policy",
        ("precision with items per query", *heads(averages)),
        tuple(rows),
        "Precision and average items of the level where its recall is that of the other policy at "
        "k, for the precision of the other with k items. A dash: the level never reaches it.",
    )


def dial_table(dataset: str, figures: Mapping[str, Any], averages: Sequence[int]) -> ResultTable:
    """Precision and recall of the level by level_temperature."""
    dial = figures["dial"]
    columns = [
        pairs_in_bold(
            [
                (float(precision[place]), float(recall[place]))
                for precision, recall in zip(dial["precision"], dial["recall"], strict=True)
            ]
        )
        for place in range(len(averages))
    ]
    return ResultTable(
        f"{dataset}: the T dial of the level",
        ("T", *heads(averages)),
        tuple(
            (f"{level_temperature:g}", *(column[place] for column in columns))
            for place, level_temperature in enumerate(dial["level_temperatures"])
        ),
        "P/R on the test queries, default towers, means over seeds.",
    )


def bars_table(bars: Sequence[Mapping[str, Any]]) -> ResultTable:
    """Every bar with what it received."""
    passed = sum(bar["passed"] for bar in bars)
    return ResultTable(
        f"Bars: {passed} of {len(bars)} reached",
        ("bar", "required", "received", ""),
        tuple(
            (
                f"{bar['dataset']}, k = {bar['k']:,}: {bar['bar']}",
                bar["required"],
                bar["received"],
                "reached" if bar["passed"] else "**missed**",
            )
            for bar in bars
        ),
    )


def mean_items(group: Mapping[str, Any]) -> float:
    """Items a query, over the seeds."""
    return float(group["average"]["mean"])


def _group_pair(found: FiguresByPolicy, policy: str, k: int, group: str) -> tuple[float, float]:
    each = found[policy][str(k)][group]
    return each["precision"]["mean"], each["recall"]["mean"]


def _p_value(value: float) -> str:
    return "< .001" if value < 0.001 else f"= {plain(value)}"

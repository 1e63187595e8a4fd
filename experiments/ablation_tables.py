"""Tables of the ablation: one change at a time, and where the level comes from."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.ablation_cutoffs import (
    LEVEL_TEMPERATURES,
    PROBES,
    SAMPLE,
    SAMPLED,
    SAMPLES,
    TUNED,
    level_temperature_name,
    probe_name,
)
from experiments.ablation_variants import DEFAULT
from experiments.measured import TITLES
from experiments.results import ResultTable
from experiments.seeds import FiguresByPolicy, Row, heads, pair, plain, policy_table, signed
from pebr_tf.report.formats import DASH

MEASURES = ("precision", "recall")
# Differences beyond so many standard errors are told as such.
_ERRORS = 2.0


def clear(change: float, error: float) -> bool:
    """Whether a difference is beyond noise; with one seed none is known to be."""
    return abs(change) > _ERRORS * error


def change_table(
    dataset: str,
    policy: str,
    variants: Mapping[str, str],
    found: Mapping[str, FiguresByPolicy],
    changes: Mapping[str, Any],
    noise: Mapping[str, Any],
    ends: Sequence[int],
) -> ResultTable:
    """One policy on the towers of every variant.

    Args:
      dataset: Its name.
      policy: Which.
      variants: Titles by name, the default first.
      found: Figures by variant.
      changes: Variant to policy to average to measure to `spread`.
      noise: Policy to average to measure to the standard error of a change.
      ends: The averages.
    """
    rows = []
    for name, title in variants.items():
        cells = []
        for k in ends:
            both = pair(found[name], policy, k)
            cells.append(DASH if both is None else "/".join(map(plain, both)))
            if both is None:
                cells.append(DASH)
            elif name == DEFAULT:
                cells.append("")
            else:
                cells.append(_change(changes[name][policy][str(k)], noise[policy][str(k)]))
        rows.append((title, *cells))
    seeds = len(found[DEFAULT][policy][str(ends[0])]["overall"]["recall"]["seeds"])
    told = (
        f" Means of {seeds} seeds; in bold, changes beyond twice their standard error, of which "
        "one in twenty would be by chance."
        if seeds > 1
        else " One seed, so differences may be noise."
    )
    columns = [part for head in heads(ends) for part in (head, "change")]
    return ResultTable(
        f"{dataset}: {TITLES[policy]}, one change at a time",
        ("P/R", *columns),
        tuple(rows),
        "Held-out clicks of the test queries, with k items per query on average; the level's "
        "level temperature is tuned for each." + told,
    )


def _change(change: Mapping[str, Any], error: Mapping[str, float]) -> str:
    """Differences in precision and recall, those beyond noise in bold."""
    texts = []
    for measure in MEASURES:
        value = change[measure]["mean"]
        text = signed(value)
        texts.append(f"**{text}**" if clear(value, error[measure]) else text)
    return "/".join(texts)


def level_temperature_table(
    dataset: str,
    found: FiguresByPolicy,
    default: FiguresByPolicy,
    runs: Sequence[Mapping[str, Any]],
    averages: Sequence[int],
) -> ResultTable:
    """The level with every level temperature, beside top k.

    Args:
      dataset: Its name.
      found: Figures of the level_temperatures.
      default: Figures of the policies on the same towers.
      runs: What `cutoffs_step` gives, of each seed.
      averages: The columns.
    """
    tuned = ", ".join(
        f"{level_temperature:g}"
        for level_temperature in sorted({run["level_temperature"] for run in runs})
    )
    rows: list[Row] = [(f"T tuned ({tuned})", TUNED, found)]
    rows += [
        (f"T = {level_temperature:g}", level_temperature_name(level_temperature), found)
        for level_temperature in LEVEL_TEMPERATURES
    ]
    rows.append((TITLES["top_k"], "top_k", default))
    return policy_table(
        f"{dataset}: the level with other level temperatures",
        rows,
        averages,
        "The default towers; T is tuned on the queries of the calibrate split. Best of each column "
        "in bold.",
    )


def level_table(
    dataset: str, found: FiguresByPolicy, levels: Mapping[str, Any], averages: Sequence[int]
) -> ResultTable:
    """The level from probes and from the head, beside the exact one.

    Args:
      dataset: Its name.
      found: Figures by source.
      levels: Source to `spread` of its error and of what it explains.
      averages: The columns.
    """
    titles = {TUNED: "exact, over all items"}
    for probe in PROBES:
        for sample in SAMPLES:
            titles[probe_name(probe, sample)] = f"probe of {probe:,}, sample of {sample:,}"
    titles[SAMPLE] = f"a sample of {SAMPLED:,} items, without a search"
    rows = []
    for name, title in titles.items():
        cells = [
            "/".join(map(plain, both))
            for k in averages
            if (both := pair(found, name, k)) is not None
        ]
        of = levels.get(name)
        told = (
            ["", ""] if of is None else [plain(of[part]["mean"]) for part in ("error", "explained")]
        )
        rows.append((title, *cells, *told))
    return ResultTable(
        f"{dataset}: the level from elsewhere",
        ("P/R", *heads(averages), "error", "explained"),
        tuple(rows),
        "The default towers with the tuned level temperature. Error: mean distance to the exact "
        "level, in "
        "logits. Explained: share of the variance of tau times level.",
    )

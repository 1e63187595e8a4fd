"""Every policy on the towers of one kind: figures, columns for the bootstrap, and the T dial."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.measured import figures_at
from experiments.policies import CorpusLawPolicy, fit_depth_law, fit_law, fit_rank_quantile
from experiments.significance import columns_at
from experiments.study import SOURCES as STUDY_SOURCES
from experiments.study import Study
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.level_temperature import level_temperatures_for, tune_level_temperature
from pebr_tf.cutoff.policies.adapter import fit_adapter
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.cutoff.policies.cdf import PdfCdfPolicy
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.cutoff.policies.registry import evaluated_policies
from pebr_tf.metrics.ranked import ListSummary, RankedLists

SOURCES = (*STUDY_SOURCES, "experiments.policies", "experiments.comparison_measured")
# Truths to measure against, and what a reader sees of them.
PROTOCOLS = {
    "clicks": "held-out clicks",
    "unseen": "held-out clicks, training pairs removed",
    "real": "held-out clicks on relevant items",
    "truth": "all relevant items",
}
# Those that a list of the level is compared with at their own recall.
OURS = ("level", "depth_law")


def measure(towers: Study, *, every_protocol: bool) -> dict[str, Any]:
    """All policies, fitted on the calibrate split, on the test queries.

    Args:
      towers: What is measured.
      every_protocol: Not only against held-out clicks, but against all of PROTOCOLS that the
        corpus has. Without training pairs everything is fitted anew.

    Returns:
      `level_temperature`; `at`: protocol to policy to average to group to figures; `columns`:
      policy to
      average to precision and recall [Q] (`significance`); `own_recall`: policy to average
      to each of OURS, with the precision and items where it has that policy's recall; `dial`: what
      each level_temperature gives.
    """
    averages = towers.config.evaluation.average_k
    level_temperatures = level_temperatures_for(None)
    calibrate = towers.candidates("calibrate", level_temperatures, known=every_protocol)
    test = towers.candidates("test", level_temperatures, known=every_protocol)
    policies = fitted(calibrate, towers)
    lists = _lists(policies, test)
    at = {"clicks": _figures(lists, averages, test)}
    if every_protocol:
        unseen = fitted(calibrate.unseen(), towers)
        at["unseen"] = _measured(unseen, averages, test.unseen())
        if towers.corpus.truth is not None:
            at["real"] = _measured(
                policies, averages, towers.real_clicks("test", level_temperatures)
            )
            at["truth"] = _measured(policies, averages, towers.truth("test", level_temperatures))
    return {
        "level_temperature": policies[0].level_temperature,
        "at": at,
        "columns": {name: _columns(each, averages) for name, each in lists.items()},
        "own_recall": _own_recalls(lists, averages),
        "dial": _dial(test, averages),
    }


def fitted(calibrate: Candidates, towers: Study) -> tuple[Policy, ...]:
    """All policies, fitted to the calibrate split: the level first, the oracle last."""
    level_tuning = tune_level_temperature(calibrate, towers.config.evaluation.average_k)
    *evaluated, oracle = evaluated_policies(level_tuning.level_temperature, fit_adapter(calibrate))
    return (
        *evaluated,
        PdfCdfPolicy(),
        CorpusLawPolicy.of(towers.items),
        fit_law(calibrate),
        fit_rank_quantile(calibrate),
        fit_depth_law(calibrate),
        oracle,
    )


def at_recall(lists: RankedLists, recall: float) -> ListSummary | None:
    """What the highest cut-off gives whose macro recall is at least `recall`; None: none has it."""
    rows, ranks = lists.relevant.rows, lists.relevant.ranks
    inside = ranks < lists.lengths[rows]
    rows = rows[inside]
    scores = lists.at(rows, ranks[inside])
    order = np.argsort(-scores, kind="stable")
    # Recall rises only where a cut-off passes the score of a relevant item.
    kept = np.cumsum(1 / lists.totals[rows[order]]) / len(lists)
    place = int(np.searchsorted(kept, recall - 1e-12))
    if place == len(kept):
        return None
    return lists.figures(lists.counts_at(float(scores[order][place])))


def _lists(policies: Sequence[Policy], candidates: Candidates) -> dict[str, RankedLists]:
    return {
        policy.name: policy.lists(candidates)
        for policy in policies
        if policy.applies_to(candidates)
    }


def _measured(
    policies: Sequence[Policy], averages: Sequence[int], candidates: Candidates
) -> dict[str, Any]:
    return _figures(_lists(policies, candidates), averages, candidates)


def _figures(
    lists: Mapping[str, RankedLists], averages: Sequence[int], candidates: Candidates
) -> dict[str, Any]:
    return {name: figures_at(each, averages, candidates) for name, each in lists.items()}


def _columns(lists: RankedLists, averages: Sequence[int]) -> dict[str, Any]:
    columns = {str(k): vars(columns_at(lists, k)) for k in averages}
    return {
        k: {name: values.astype(np.float32) for name, values in each.items()}
        for k, each in columns.items()
    }


def _own_recalls(lists: Mapping[str, RankedLists], averages: Sequence[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in lists.items():
        found[name] = {}
        for k in averages:
            wanted = each.figures(each.counts_at(each.cutoff_at(k))).recall
            found[name][str(k)] = {
                ours: None
                if (figures := at_recall(lists[ours], wanted)) is None
                else {"precision": figures.precision, "average": figures.average}
                for ours in OURS
            }
    return found


def _dial(candidates: Candidates, averages: Sequence[int]) -> dict[str, Any]:
    """`level_temperatures` [T], and `precision` and `recall`, [T, K] each."""
    rows = []
    for level_temperature in candidates.levels:
        lists = LevelPolicy(level_temperature=level_temperature).lists(candidates)
        rows.append([lists.figures(lists.counts_at(lists.cutoff_at(k))) for k in averages])
    return {
        "level_temperatures": list(candidates.levels),
        "precision": [[figures.precision for figures in row] for row in rows],
        "recall": [[figures.recall for figures in row] for row in rows],
    }

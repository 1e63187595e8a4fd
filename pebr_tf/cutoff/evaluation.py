"""Test queries under every policy and every knob: what evaluation.json says of the cut-off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import Calibration, bounded
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.policies import Policies
from pebr_tf.metrics.comparison import at_averages, by_group, curve, groups_of, histogram
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.metrics.strata import STRATA

ASKED = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
EXAMPLES = 12


def default_policy(settings: Cutoff) -> str:
    """The name in POLICIES of what a release serves with."""
    by_head = settings.policy == "level" and settings.level_source == "head"
    return "level_head" if by_head else settings.policy


def evaluate_policies(
    policies: Policies,
    candidates: Candidates,
    average_k: Sequence[int],
    default: str,
    curves: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Every policy at equal averages, on the same queries.

    Args:
      policies: With what was learnt for them.
      candidates: Of the test queries, or their `unseen` form.
      average_k: Averages to compare at.
      default: The policy that a release serves with.
      curves: Receives the curve of each policy by name, if given.
    """
    entries = []
    for name in policies.names(candidates):
        lists = policies.lists(name, candidates)
        if curves is not None:
            curves[name] = curve(lists, average_k)
        at = at_averages(lists, average_k, candidates.queries.strata, candidates.capped)
        entries.append(
            {"name": name, "title": policies.title(name), "default": name == default, "at": at}
        )
    return entries


class Knobs:
    """The calibrated knobs on test queries, floor and limit applied."""

    def __init__(
        self,
        calibration: Calibration,
        policies: Policies,
        candidates: Candidates,
        settings: Cutoff,
    ):
        """Takes the candidates of the test queries, with what calibration and settings say."""
        self.calibration, self.candidates, self.settings = calibration, candidates, settings
        self._policies = policies
        self.lists = policies.lists(default_policy(settings), candidates)
        self.strata = candidates.queries.strata
        self.counts = self._counts(settings.default_knob, settings.default_value)

    def measure(self, average_k: Sequence[int]) -> dict[str, Any]:
        """`calibration`, `default_knob`, `budget` and `counts` of evaluation.json."""
        settings = self.settings
        figures = by_group(self.lists, self.counts, self.strata, self.candidates.capped)
        budgets = [float(self._counts("budget", k).mean()) for k in average_k]
        return {
            "calibration": self._calibration(),
            "default_knob": {
                "knob": settings.default_knob,
                "value": settings.default_value,
                "figures": figures["overall"],
                "by_stratum": {name: figures[name] for name in STRATA if name in figures},
            },
            "budget": {"asked": list(average_k), "received": budgets},
            "counts": histogram(self.counts),
        }

    def examples(self, texts: Sequence[str]) -> Iterator[dict[str, Any]]:
        """A dozen queries from the fewest items to the most, with their texts [Q]."""
        order = np.argsort(self.counts, kind="stable")
        places = np.linspace(0, len(order) - 1, min(EXAMPLES, len(order))).astype(int)
        hits = self.lists.hits(self.counts)
        for row in order[places]:
            last = self.candidates.cosines[row, max(self.counts[row] - 1, 0)]
            yield {
                "query": texts[row],
                "stratum": STRATA[self.strata[row]],
                "count": int(self.counts[row]),
                "relevant": int(self.lists.totals[row]),
                "kept": int(hits[row]),
                # Where the list ends: the cosine of its last item.
                "threshold": float(last) if self.counts[row] else 1.0,
            }

    def cutoffs(self, knob: str, value: float) -> np.ndarray:
        """[Q] cut-offs of a calibrated knob."""
        return self.calibration.cutoff_for(knob, value, self.strata)

    def _counts(self, knob: str, value: float) -> np.ndarray:
        """[Q] items of each query."""
        if knob == "top_k":
            counts = np.full(len(self.lists), int(value))
        elif knob == "score":
            counts = self._scored().counts_at(value)
        else:
            counts = self.lists.counts_at(self.cutoffs(knob, value))
        return bounded(self.lists, counts, self.settings.floor, self.settings.limit)

    def _scored(self) -> RankedLists:
        return self._policies.lists("score", self.candidates)

    def _calibration(self) -> dict[str, Any]:
        """What the recall knob keeps of the held-out clicks, against what it promises.

        The promise is the share asked for, held to the range that calibration can vouch for.
        """
        groups = groups_of(self.strata)
        kept: dict[str, list[float]] = {name: [] for name in groups}
        promised: dict[str, list[float]] = {name: [] for name in groups}
        averages = []
        for share in ASKED:
            counts = self._counts("recall", share)
            promise = self.calibration.promised("recall", share, self.strata)
            averages.append(float(counts.mean()))
            for name, mask in groups.items():
                kept[name].append(self.lists.figures(counts, mask).recall)
                promised[name].append(float(promise[mask].mean()))
        error = {
            name: float(np.mean(np.abs(np.subtract(kept[name], promised[name])))) for name in groups
        }
        return {
            "asked": list(ASKED),
            "promised": promised,
            "kept": kept,
            "average": averages,
            "error": error,
        }

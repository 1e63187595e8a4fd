"""Test queries under every policy and every knob: the cut-off part of evaluation.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import Calibration, bounded_counts
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.knobs import ReleaseKnobs
from pebr_tf.cutoff.policies import Policy
from pebr_tf.metrics.comparison import at_averages, by_group, curve, groups_of, histogram
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.metrics.strata import STRATA

RECALLS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
EXAMPLES = 12


def evaluate_policies(
    policies: Sequence[Policy],
    candidates: Candidates,
    average_k: Sequence[int],
    default: str,
    curves: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Every policy that applies to the candidates at equal averages, on the same queries.

    Args:
      policies: The policies, fitted.
      candidates: Candidates of the test queries, or their `unseen` form.
      average_k: Averages to compare at.
      default: Name of the policy that a release serves with.
      curves: Receives the curve of each policy by name, if given.
    """
    entries = []
    for policy in policies:
        if not policy.applies_to(candidates):
            continue
        lists = policy.lists(candidates)
        if curves is not None:
            curves[policy.name] = curve(lists, average_k)
        at = at_averages(lists, average_k, candidates.queries.strata, candidates.capped)
        is_default = policy.name == default
        entries.append(
            {"name": policy.name, "title": policy.title, "default": is_default, "at": at}
        )
    return entries


class KnobEvaluation:
    """The knobs of a release on test queries, with floor and limit applied."""

    def __init__(self, calibration: Calibration, candidates: Candidates, settings: Cutoff):
        """Takes the calibration, the candidates of the test queries and the settings."""
        self.calibration, self.candidates, self.settings = calibration, candidates, settings
        self.strata = candidates.queries.strata
        self._knobs = ReleaseKnobs(calibration, settings)
        self._lists: dict[Policy, RankedLists] = {}
        self.policy = self._knobs.calibrated_policy
        self.lists = self._lists_of(self.policy)
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
        """A dozen queries, from the fewest items to the most; `texts` [Q] are all queries."""
        order = np.argsort(self.counts, kind="stable")
        chosen = np.linspace(0, len(order) - 1, min(EXAMPLES, len(order))).astype(int)
        hits = self.lists.hits(self.counts)
        for row in order[chosen]:
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

    def _lists_of(self, policy: Policy) -> RankedLists:
        if policy not in self._lists:
            self._lists[policy] = policy.lists(self.candidates)
        return self._lists[policy]

    def _counts(self, knob: str, value: float) -> np.ndarray:
        """[Q] number of items of each query."""
        rule = self._knobs.rule(knob, value)
        counts = self._lists_of(rule.policy).counts_at(rule.cutoffs[self.strata])
        return bounded_counts(self.lists, counts, self.settings.floor, self.settings.limit)

    def _calibration(self) -> dict[str, Any]:
        """The recall on held-out clicks, compared with the recall that calibration guarantees.

        The guaranteed recall is the requested one, clipped to the range that calibration reaches.
        """
        groups = groups_of(self.strata)
        kept: dict[str, list[float]] = {name: [] for name in groups}
        promised: dict[str, list[float]] = {name: [] for name in groups}
        averages = []
        for recall in RECALLS:
            counts = self._counts("recall", recall)
            reachable = self.calibration.reachable("recall", recall, self.strata)
            averages.append(float(counts.mean()))
            for name, mask in groups.items():
                kept[name].append(self.lists.figures(counts, mask).recall)
                promised[name].append(float(reachable[mask].mean()))
        error = {
            name: float(np.mean(np.abs(np.subtract(kept[name], promised[name])))) for name in groups
        }
        return {
            "asked": list(RECALLS),
            "promised": promised,
            "kept": kept,
            "average": averages,
            "error": error,
        }

"""Measures every policy and every knob on test queries."""

from collections.abc import Sequence

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import Calibration, bounded_counts, cross_fitted, served_lists
from pebr_tf.cutoff.candidates import Candidates, ClickedPairs
from pebr_tf.cutoff.knobs import ReleaseKnobs
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.cutoff.policies.plain import TopKPolicy
from pebr_tf.metrics.comparison import at_averages, by_group, count_histogram, curve, groups_of
from pebr_tf.metrics.ranked import RankedLists, top_k_for
from pebr_tf.metrics.results import (
    BudgetResult,
    CalibrationResult,
    CountHistogram,
    ExampleQuery,
    KnobResult,
    PolicyResult,
)
from pebr_tf.metrics.significance import Evidence, interval
from pebr_tf.metrics.strata import STRATA

RECALLS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
EXAMPLES, CLICKS = 12, 100


def evaluate_policies(
    policies: Sequence[Policy],
    candidates: Candidates,
    average_k: Sequence[int],
    default: str,
    offsets: np.ndarray | None = None,
    with_curves: bool = False,
) -> list[PolicyResult]:
    """Every policy that applies to the candidates at equal averages, on the same queries.

    `candidates` are those of the test queries, or their `unseen` form; `default` is the name of the
    policy that a release serves with, and `offsets` [3] are those of its strata.
    """
    results = []
    for policy in policies:
        if not policy.applies_to(candidates):
            continue
        lists = policy.lists(candidates)
        if policy.name == default and offsets is not None:
            lists = lists.shifted(offsets[candidates.queries.strata])
        results.append(
            PolicyResult(
                name=policy.name,
                title=policy.title,
                default=policy.name == default,
                at=at_averages(lists, average_k, candidates.queries.strata, candidates.truncated),
                curve=curve(lists, average_k) if with_curves else None,
            )
        )
    return results


def own_gain(
    candidates: Candidates, corpus: np.ndarray, relevant: ClickedPairs, k: int
) -> np.ndarray:
    """[Q] recall of a query's own best `k` items, less that of another query's.

    A model that cannot tell queries apart gains nothing, whatever it has learned about items. The
    other query is half of all queries away, because queries with neighbouring texts are alike.
    `corpus` [N, n] are the vectors of all items, and `relevant` the pairs of the candidates.
    """
    k = min(k, candidates.depth)
    vectors, shift = candidates.queries.vectors, len(candidates) // 2
    other = (relevant.rows + shift) % len(candidates)
    # Sums in another order differ in their last bits, which must not tell equal items apart.
    last = candidates.cosines[:, k - 1][other] - 1e-6
    known = relevant.items >= 0
    found = np.zeros(len(known), bool)
    pairs = vectors[other[known]], corpus[relevant.items[known]]
    found[known] = np.einsum("pn,pn->p", *pairs) >= last[known]
    others = np.bincount(relevant.rows, found, len(candidates))
    own = candidates.relevant.before(np.full(len(candidates), k))
    return (own - others) / candidates.totals


class KnobEvaluation:
    """The knobs of a release on test queries, with floor and limit applied.

    A release with few queries is evaluated by `cross_fitted` calibrations.
    """

    def __init__(self, calibration: Calibration, candidates: Candidates, settings: Cutoff):
        self.calibration, self.candidates = calibration, candidates
        self.strata = candidates.queries.strata
        self._settings = settings
        self._lists: dict[tuple[Policy, bool], RankedLists] = {}
        self.policy = ReleaseKnobs(calibration, settings).calibrated_policy
        lists = self._lists_of(self.policy, True)
        # Figures of given counts, which are the same for every policy.
        self._ranked = self._lists_of(TopKPolicy(), False)
        self._calibrations, self._fold = [calibration], np.zeros(len(lists), np.int64)
        if calibration.folds:
            self._calibrations, self._fold = cross_fitted(calibration, lists, self.strata)
        self._knobs = [ReleaseKnobs(each, settings) for each in self._calibrations]
        self.lists = lists.shifted(calibration.offsets[self.strata])
        self.counts = self._counts(calibration.default_knob, calibration.default_value)

    def default_knob(self) -> KnobResult:
        """The default knob, overall and by stratum, beside top k."""
        items = max(round(float(self.counts.mean())), 1)
        recalls = self._ranked.shares(self.counts)[1]
        equal = np.full(len(self.lists), items)
        return KnobResult(
            knob=self.calibration.default_knob,
            value=self.calibration.default_value,
            groups=by_group(self._ranked, self.counts, self.strata, self.candidates.truncated),
            interval=interval(recalls),
            top_k_items=top_k_for(self._ranked, float(recalls.mean())),
            top_k_recall=self._ranked.figures(equal).recall,
        )

    def budget(self, average_k: Sequence[int]) -> BudgetResult:
        measured = [float(self._counts("budget", k).mean()) for k in average_k]
        return BudgetResult(list(average_k), measured)

    def evidence(self, k: int, gain: np.ndarray, index_recall: np.ndarray) -> Evidence:
        """What the gates resample, with lists of `k` items on average."""
        both = [self.lists, self._ranked]
        shares = [lists.shares(lists.counts_at(lists.cutoff_at(k))) for lists in both]
        precision, recall = (np.stack(pair, axis=1) for pair in zip(*shares, strict=True))
        recalls = [self._ranked.shares(self._counts("recall", value))[1] for value in RECALLS]
        return Evidence(
            strata=self.strata,
            precision=precision,
            recall=recall,
            gain=gain,
            recalls=np.stack(recalls, axis=1),
            empty=self.counts == 0,
            index_recall=index_recall,
        )

    def histogram(self) -> CountHistogram:
        return count_histogram(self.counts)

    def examples(self, texts: Sequence[str]) -> list[ExampleQuery]:
        """A dozen queries from the fewest items to the most, with their texts [Q]."""
        order = np.argsort(self.counts, kind="stable")
        chosen = np.linspace(0, len(order) - 1, min(EXAMPLES, len(order))).astype(int)
        hits = self._ranked.hits(self.counts)
        return [
            ExampleQuery(
                query=texts[row],
                stratum=STRATA[self.strata[row]],
                count=int(self.counts[row]),
                relevant=int(self._ranked.totals[row]),
                hits=int(hits[row]),
                threshold=float(self.candidates.cosines[row, self.counts[row] - 1])
                if self.counts[row]
                else 1.0,
                clicks=self._clicks(row),
            )
            for row in order[chosen]
        ]

    def _clicks(self, row: int) -> list[float]:
        relevant = self.candidates.relevant
        ranks = np.sort(relevant.ranks[relevant.rows == row])
        # An item that is no candidate has a rank behind the last.
        ranks = ranks[ranks < self.candidates.depth][:CLICKS]
        return self.candidates.cosines[row, ranks].tolist()

    def _lists_of(self, policy: Policy, is_calibrated: bool) -> RankedLists:
        key = policy, is_calibrated
        if key not in self._lists:
            if is_calibrated:
                self._lists[key] = served_lists(policy, self.candidates, self._settings)
            else:
                self._lists[key] = policy.lists(self.candidates)
        return self._lists[key]

    def _counts(self, knob: str, value: float) -> np.ndarray:
        rules = [knobs.rule(knob, value) for knobs in self._knobs]
        cutoffs = np.stack([rule.cutoffs for rule in rules])[self._fold, self.strata]
        lists = self._lists_of(rules[0].policy, rules[0].is_calibrated)
        floor, limit = self.calibration.floor, self.calibration.limit
        return bounded_counts(lists, lists.counts_at(cutoffs), floor, limit)

    def calibration_result(self) -> CalibrationResult:
        """The recall knob: expected and measured recall at several values."""
        groups = groups_of(self.strata)
        expected: dict[str, list[float]] = {name: [] for name in groups}
        measured: dict[str, list[float]] = {name: [] for name in groups}
        averages = []
        for recall in RECALLS:
            counts = self._counts("recall", recall)
            recalls = [each.expected_recall(recall, self.strata) for each in self._calibrations]
            expectation = np.stack(recalls)[self._fold, np.arange(len(self.strata))]
            averages.append(float(counts.mean()))
            for name, mask in groups.items():
                measured[name].append(self._ranked.figures(counts, mask).recall)
                expected[name].append(float(expectation[mask].mean()))
        error = {
            name: float(np.mean(np.abs(np.subtract(measured[name], expected[name]))))
            for name in groups
        }
        queries = {"overall": self.calibration.queries}
        queries.update((name, each.queries) for name, each in self.calibration.strata.items())
        folds = self.calibration.folds
        return CalibrationResult(list(RECALLS), expected, measured, averages, error, queries, folds)

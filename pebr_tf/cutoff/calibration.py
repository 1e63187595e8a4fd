"""Calibration: from a recall, or an average number of items, to the cut-off of a policy.

*Recall.* The loss of a query at cut-off c is 1 - recall(c), the share of its held-out clicks that a
list with floor and limit misses: between 0 and 1, and never falling as c rises. Conformal risk
control (Angelopoulos et al., 2022) takes, on n calibrate queries, the largest c with

    n / (n + 1) * mean_loss(c) + 1 / (n + 1) <= 1 - recall,

which is n / (n + 1) * mean_recall(c) >= recall. For another query from the same distribution the
expected recall is then at least `recall`, for any model and any number of queries. The guarantee
holds at the points of the map, 99 recalls and both ends; the map is linear between them.

The recall that a cut-off guarantees is therefore n / (n + 1) * mean_recall(c). It ranges from what
the floor alone keeps to what all candidates keep. Outside this range the nearest end is used, and
`out_of_range_message` reports it.

One map serves all queries. Where it pays, the cut-offs of a stratum (head, torso or tail) have an
offset. It brings the stratum to the recall of all, shrunk by n / (n + n0) for n queries of the
stratum. n0 is `min_calibration_queries`: the recall of 200 queries has a standard error of about
.03, as much as gates allow, so that a stratum with fewer is trusted less than half. Offsets pay if
they return significantly fewer items at the same recall, cross-validated on the calibrate queries.
With or without offsets the recall of a stratum differs from that of all; `strata` has it.

*Budget.* The average number of items per query, with floor and limit applied.

*Default.* Unless the configuration sets it, the default recall is the one that the largest average
of the evaluation reaches, so that weak towers do not return a third of the catalogue.

*Few queries.* Below `min_calibration_queries` the maps are fitted to the held-out queries of both
splits, calibrate and test, and evaluated by `cross_fitted` ones: `folds` says so.

*Signature.* The recall map of the exported query model, which has one level and one map for all
queries, so that thresholds from TF Serving reach the requested recall without the service.

*Share.* From a share of each query's own relevant items to the CDF of its law; see `law_fit`.

*Familiarity.* A query is unfamiliar if none of its words, or a smaller share of them than all but
UNFAMILIAR of the calibrate queries have, occurs in training queries. The order of words is not
compared: most new queries are known words in a new order. Its list has `unfamiliar_items` items at
every calibrated knob, in the maps as in the service.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.candidates import Candidates
from pebr_tf.cutoff.cutoff_file import FILE_NAME
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.distributions.logit import Family
from pebr_tf.distributions.query_law import LawWeights, initial_weights
from pebr_tf.errors import UserError
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.metrics.significance import noise
from pebr_tf.metrics.strata import STRATA

VERSION = 4
# The points of a recall map.
RECALLS = tuple(percent / 100 for percent in range(1, 100))
# Number of points of a budget map.
AVERAGES = 60
UNFAMILIAR = 0.005
FOLDS = 5
# A knob that returns a larger share of the catalogue than this gets a note.
LARGE_SHARE = 0.1
# An interval of a recall that reaches farther than this to each side is stated; with folds, any.
WIDE = 0.03
CALIBRATED_KNOBS = ("recall", "budget")
_MAPS = (*CALIBRATED_KNOBS, "signature", "share")
# The share map of laws that are true without one.
TRUE_SHARE = KnobMap(np.array([0.0, 1.0]), np.array([1.0, 0.0], np.float32), 0)


@dataclass(frozen=True)
class StratumRecall:
    """What the queries of one stratum keep.

    Attributes:
      queries: Number of queries that it was measured on.
      offset: Added to every cut-off of the stratum.
      recalls: [G] recall at the points of the recall map.
    """

    queries: int
    offset: float
    recalls: list[float]


@dataclass(frozen=True)
class Calibration:
    """What the calibrated knobs mean: the content of cutoff.json.

    Attributes:
      policy: Name of the policy that the cut-offs belong to; see `policies`.
      queries: Number of queries with held-out clicks that the maps were fitted to.
      folds: Folds by which the maps are evaluated; 0 if they were fitted to the split calibrate.
      default_knob, default_value: What a request without a knob gets.
      default_items: Items per query that the default costs; None if that is not known.
      recall: From recall to cut-off.
      errors: [G] standard errors of the recall at the points of that map.
      strata: What each stratum that has queries keeps.
      budget: From average items per query to cut-off.
      signature: From recall to the cut-off of the query model's own thresholds.
      share: From the share of each query's relevant items to the cut-off of the policy share.
      least_known: Share of known words below which a query is unfamiliar.
      law: The law head.
    """

    policy: str
    family: Family
    level_temperature: float
    floor: int
    limit: int
    queries: int
    folds: int
    default_knob: str
    default_value: float
    default_items: float | None
    recall: KnobMap
    errors: list[float]
    strata: dict[str, StratumRecall]
    budget: KnobMap
    signature: KnobMap
    share: KnobMap
    least_known: float
    law: LawWeights

    @property
    def offsets(self) -> np.ndarray:
        """[3] float32, what is added to the cut-offs of each stratum."""
        found = (self.strata.get(name) for name in STRATA)
        return np.array([each.offset if each else 0.0 for each in found], np.float32)

    def cutoff_for(self, knob: str, value: float, strata: np.ndarray) -> np.ndarray:
        """[B] float32 cut-offs of queries of `strata` [B] for "recall" or "budget"."""
        return self._map_of(knob).cutoff(value) + self.offsets[strata]

    def _map_of(self, knob: str) -> KnobMap:
        return self.budget if knob == "budget" else self.recall

    def expected_recall(self, value: float, strata: np.ndarray) -> np.ndarray:
        """[B] the recall that the strata of queries keep when `value` is requested of all."""
        points = self.recall.knob_values
        expected = np.full(len(STRATA), np.clip(value, points[0], points[-1]))
        for index, name in enumerate(STRATA):
            if name in self.strata:
                expected[index] = np.interp(value, points, self.strata[name].recalls)
        return expected[strata]

    def interval(self, recall: float) -> tuple[float, float]:
        """The 95% interval of the mean recall of other queries when `recall` is requested."""
        error = float(np.interp(recall, self.recall.knob_values, self.errors))
        expected = min(max(recall, self.recall.lowest), self.recall.highest)
        return max(expected - 1.96 * error, 0.0), min(expected + 1.96 * error, 1.0)

    def items_per_query(self, knob: str, value: float) -> float | None:
        """The average number of items that a knob returns; None if it was not measured."""
        if knob == "recall":
            return float(self.budget.value(self.recall.cutoff(value)))
        return float(value) if knob in ("budget", "top_k") else None

    def notes(
        self, knob: str, value: float, catalogue: int, returned: float | None = None
    ) -> tuple[str, ...]:
        """What a caller should know about a knob's value, one sentence each; mostly nothing.

        `catalogue` is the number of all items. `returned`, the items per query of an answer, stands
        for an average that was not measured.
        """
        found = []
        if knob in CALIBRATED_KNOBS and (message := self.out_of_range_message(knob, value)):
            found.append(message)
        items = self.items_per_query(knob, value)
        items = returned if items is None else items
        if items is not None and items > LARGE_SHARE * catalogue > 0:
            found.append(
                f"{knob} {value:g} returns {items:,.0f} items per query on average, "
                f"{100 * items / catalogue:.3g}% of the {catalogue:,} items."
            )
        if knob == "recall":
            low, high = self.interval(value)
            if self.folds or high - low > 2 * WIDE:
                found.append(
                    f"recall {value:g} was calibrated on {self.queries:,} queries: its 95% "
                    f"interval is {low:.2g} to {high:.2g}."
                )
        return tuple(found)

    def out_of_range_message(self, knob: str, value: float) -> str | None:
        """One sentence if `value` is outside the range that the knob reaches, else None."""
        reached = self._map_of(knob)
        if reached.lowest <= value <= reached.highest:
            return None
        used = min(max(value, reached.lowest), reached.highest)
        digits = ".3f" if knob == "recall" else ".1f"
        return (
            f"{knob} must be from {reached.lowest:{digits}} to {reached.highest:{digits}}, the "
            f"range that {reached.queries} held-out queries support. Received: {value:g}, "
            f"answered as {used:{digits}}."
        )

    def save(self, directory: Path) -> None:
        content = {"version": VERSION, **vars(self)}
        content.update((name, getattr(self, name).to_mapping()) for name in _MAPS)
        content["strata"] = {name: asdict(each) for name, each in self.strata.items()}
        content["law"] = self.law.to_mapping()
        text = json.dumps(content, indent=1) + "\n"
        (directory / FILE_NAME).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> Calibration:
        try:
            content = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"cutoff.json must be JSON. Received: {error}.") from None
        version = content.get("version") if isinstance(content, dict) else content
        if version != VERSION:
            raise UserError(f"cutoff.json must have version {VERSION}. Received: {version!r}.")
        try:
            values = {field.name: content[field.name] for field in fields(cls)}
            values.update((name, KnobMap.from_mapping(content[name])) for name in _MAPS)
            strata = content["strata"].items()
            values["strata"] = {name: StratumRecall(**each) for name, each in strata}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"cutoff.json must hold a calibration. Received: {error!r}.") from None
        values["law"] = LawWeights.from_mapping("law of cutoff.json", content["law"])
        return cls(**values)


def least_known_share(known_share: np.ndarray) -> float:
    """The share of known words below which a query is unfamiliar, by calibrate queries [Q]."""
    return float(np.quantile(known_share, UNFAMILIAR))


def is_unfamiliar(known_share: Any, least_known: float) -> Any:
    """[B] bool of shares [B] of known words, in NumPy or TensorFlow."""
    return (known_share <= 0) | (known_share < least_known)


def served_lists(policy: Policy, candidates: Candidates, config: Cutoff) -> RankedLists:
    """The lists of a policy, with those of unfamiliar queries as they are served."""
    lists, unfamiliar = policy.lists(candidates), candidates.queries.unfamiliar
    if unfamiliar is None:
        return lists
    return lists.fixed(unfamiliar, config.unfamiliar_items or max(config.floor, 1))


def calibrate(
    lists: RankedLists,
    strata: np.ndarray,
    policy: str,
    family: Family,
    level_temperature: float,
    config: Cutoff,
    average_k: Sequence[int],
    share: KnobMap = TRUE_SHARE,
    signature_lists: RankedLists | None = None,
    least_known: float = 0.0,
    law: LawWeights | None = None,
    folds: int = 0,
) -> Calibration:
    """Fits the maps to queries with held-out clicks.

    `lists` are their candidates, scored by `policy`; a list never exceeds the candidates. `strata`
    [Q] are indices into STRATA. `average_k` are those of the evaluation. `signature_lists` are
    scored as the query model scores them; None if that is the same. `folds` is not 0 if the queries
    are those of both splits.
    """
    floor, limit = config.floor, config.limit
    value = config.default_value
    common = recall_map(lists, floor, limit)
    if value is None:
        reached = float(common.value(lists.head(limit).cutoff_at(max(average_k), floor)))
        # Two digits that people can remember; never more than what is reached.
        unit = 10 ** (np.floor(np.log10(max(reached, 0.001))) - 1)
        value = round(min(max(np.floor(reached / unit) * unit, 0.001), 0.99), 5)
    recall = value if config.default_knob == "recall" else float(np.median(common.knob_values))
    offsets = np.zeros(len(STRATA), np.float32)
    if _offsets_pay(lists, strata, config, recall):
        offsets = _offsets(lists, strata, config, recall)
    served = Calibration(
        policy=policy,
        family=family,
        level_temperature=float(level_temperature),
        floor=floor,
        limit=limit,
        folds=folds,
        default_knob=config.default_knob,
        default_value=float(value),
        default_items=None,
        **_maps(lists, strata, offsets, floor, limit),
        signature=recall_map(signature_lists or lists, floor, limit),
        share=share,
        least_known=least_known,
        law=law or initial_weights(),
    )
    return replace(served, default_items=served.items_per_query(config.default_knob, float(value)))


def cross_fitted(
    served: Calibration, lists: RankedLists, strata: np.ndarray
) -> tuple[list[Calibration], np.ndarray]:
    """Calibrations of the other folds, and the fold [Q] of each query.

    Each query is evaluated with maps that were not fitted to it; offsets are those that are served.
    """
    fold = np.random.default_rng(0).permutation(len(lists)) % served.folds
    parts = [
        _maps(lists.part(kept), strata[kept], served.offsets, served.floor, served.limit)
        for kept in (fold != each for each in range(served.folds))
    ]
    return [replace(served, **part) for part in parts], fold


def _maps(
    lists: RankedLists, strata: np.ndarray, offsets: np.ndarray, floor: int, limit: int
) -> dict[str, Any]:
    """The fields of a calibration that are fitted to the served lists."""
    lists = lists.shifted(offsets[strata])
    recall = recall_map(lists, floor, limit)
    recalls = np.stack(
        [
            lists.shares(bounded_counts(lists, lists.counts_at(cutoff), floor, limit))[1]
            for cutoff in recall.cutoffs
        ]
    )
    masks = {name: np.asarray(strata) == index for index, name in enumerate(STRATA)}
    return {
        "queries": len(lists),
        "recall": recall,
        "errors": (recalls.std(axis=1, ddof=1) / np.sqrt(len(lists))).tolist(),
        "strata": {
            name: StratumRecall(
                int(mask.sum()), float(offset), recalls[:, mask].mean(axis=1).tolist()
            )
            for (name, mask), offset in zip(masks.items(), offsets, strict=True)
            if mask.any()
        },
        "budget": budget_map(lists, floor, limit),
    }


def _offsets(lists: RankedLists, strata: np.ndarray, config: Cutoff, recall: float) -> np.ndarray:
    """[3] float32 offsets that bring each stratum towards `recall`, as far as it is trusted."""
    common = recall_map(lists, config.floor, config.limit).cutoff(recall)
    offsets = np.zeros(len(STRATA), np.float32)
    for index in range(len(STRATA)):
        mask = np.asarray(strata) == index
        if mask.any():
            own = recall_map(lists.part(mask), config.floor, config.limit).cutoff(recall)
            trust = mask.sum() / (mask.sum() + config.min_calibration_queries)
            offsets[index] = trust * (own - common)
    return offsets


def _offsets_pay(lists: RankedLists, strata: np.ndarray, config: Cutoff, recall: float) -> bool:
    """Whether offsets that were fitted to other queries save items at the same recall.

    Both ways are compared at the cut-offs with which these queries reach `recall`. Other queries
    would need other cut-offs, so the noise of the saving is that of the items less the price of the
    recall: items per unit of recall at this point.
    """
    fold = np.random.default_rng(0).permutation(len(lists)) % FOLDS
    shifts = np.zeros(len(lists), np.float32)
    for each in range(FOLDS):
        others = fold != each
        offsets = _offsets(lists.part(others), strata[others], config, recall)
        shifts[~others] = offsets[strata[~others]]

    def priced(measured: RankedLists) -> tuple[float, np.ndarray]:
        """The average number of items, and [Q] its terms."""
        fitted = recall_map(measured, config.floor, config.limit)
        near = np.clip([recall, recall - 0.02, recall + 0.02], fitted.lowest, fitted.highest)
        counts, low, high = (
            bounded_counts(measured, measured.counts_at(cutoff), config.floor, config.limit)
            for cutoff in fitted.cutoff(near)
        )
        price = (high - low).mean() / max(near[2] - near[1], 1e-9)
        return float(counts.mean()), counts - price * measured.shares(counts)[1]

    (common, common_terms), (apart, apart_terms) = map(priced, (lists, lists.shifted(shifts)))
    return common - apart > noise(apart_terms - common_terms)


def bounded_counts(lists: RankedLists, counts: np.ndarray, floor: int, limit: int) -> np.ndarray:
    """[Q] counts within floor and limit, and at most the number of candidates."""
    return np.minimum(np.clip(counts, floor, limit), lists.lengths)


def recall_map(lists: RankedLists, floor: int, limit: int) -> KnobMap:
    """The map from recall to cut-off, by conformal risk control."""
    queries = len(lists)
    floors = bounded_counts(lists, np.zeros(queries, np.int64), floor, limit)
    limits = bounded_counts(lists, lists.lengths, floor, limit)
    rows, ranks = lists.relevant.rows, lists.relevant.ranks
    moved = (ranks >= floors[rows]) & (ranks < limits[rows])
    rows, ranks = rows[moved], ranks[moved]
    scores = lists.at(rows, ranks)
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    gains = np.concatenate([[lists.figures(floors).recall], (1 / lists.totals[rows])[order]])
    gains[1:] /= queries
    # Recall rises only where a cut-off passes the score of a relevant item.
    guaranteed = np.cumsum(gains) * queries / (queries + 1)
    cutoffs = np.concatenate([[_above(lists)], scores]).astype(np.float32)
    between = [recall for recall in RECALLS if guaranteed[0] < recall < guaranteed[-1]]
    recalls = np.array([guaranteed[0], *between, guaranteed[-1]])
    # Sums such as ten tenths are inexact in their last bits.
    index = np.searchsorted(guaranteed, recalls - 1e-12)
    return KnobMap.through(recalls, cutoffs[index], queries)


def budget_map(lists: RankedLists, floor: int, limit: int) -> KnobMap:
    """The map from the average number of items to the cut-off."""

    def average(cutoff: float) -> float:
        return float(bounded_counts(lists, lists.counts_at(cutoff), floor, limit).mean())

    least = average(np.inf)
    most = float(bounded_counts(lists, lists.lengths, floor, limit).mean())
    wanted = np.geomspace(max(least, 1 / len(lists)), most, AVERAGES if most > least else 0)
    limited = lists.head(limit)
    above = float(_above(lists))
    cutoffs = np.array([above, *(min(limited.cutoff_at(value, floor), above) for value in wanted)])
    # The measured averages, which differ from those wanted where scores are equal.
    averages = np.array([average(cutoff) for cutoff in cutoffs])
    return KnobMap.through(averages, cutoffs, len(lists))


def _above(lists: RankedLists) -> np.float32:
    """A finite cut-off above every score, which leaves only the floor."""
    best = lists.at(np.arange(len(lists)), np.zeros(len(lists), np.int64))
    highest = np.float32(best[best > -np.inf].max(initial=-1e30))
    return np.nextafter(highest, np.float32(np.inf))

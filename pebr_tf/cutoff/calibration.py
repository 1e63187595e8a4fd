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

A stratum (head, torso or tail) has its own map if it has a quarter of the queries that a
calibration needs. The others use the overall map.

*Budget.* The average number of items per query, with floor and limit applied.

*Signature.* The recall map of the exported query model, which has one level and one map for all
queries, so that what TF Serving returns keeps its promise without the service.

*Share.* From a share of each query's own relevant items to the CDF of its law; see `law_fit`.

*Familiarity.* A query is unfamiliar if none of its words, or a smaller share of them than all but
UNFAMILIAR of the calibrate queries have, occurs in training queries. The order of words is not
compared: most new queries are known words in a new order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.knob_map import KnobMap, require_keys
from pebr_tf.distributions.logit import Family, require_family
from pebr_tf.distributions.query_law import LawWeights, initial_weights
from pebr_tf.errors import UserError
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.metrics.strata import STRATA

FILE_NAME = "cutoff.json"
VERSION = 3
# The points of a recall map.
RECALLS = tuple(percent / 100 for percent in range(1, 100))
# Number of points of a budget map.
AVERAGES = 60
UNFAMILIAR = 0.005
CALIBRATED_KNOBS = ("recall", "budget")
_MAPS = (*CALIBRATED_KNOBS, "signature", "share")
# The share map of laws that are true without one.
TRUE_SHARE = KnobMap(np.array([0.0, 1.0]), np.array([1.0, 0.0], np.float32), 0)


@dataclass(frozen=True)
class Calibration:
    """What the calibrated knobs mean: the content of cutoff.json.

    Attributes:
      policy: Name of the policy that the cut-offs belong to; see `policies`.
      queries: Number of calibrate queries with held-out clicks.
      recall: From recall to cut-off, for all queries.
      strata: The same by stratum, for strata with enough queries.
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
    recall: KnobMap
    strata: dict[str, KnobMap]
    budget: KnobMap
    signature: KnobMap
    share: KnobMap
    least_known: float
    law: LawWeights

    def map_of(self, knob: str, stratum: int | None = None) -> KnobMap:
        """The map of a knob, for one stratum (an index into STRATA) or for all queries."""
        if knob not in CALIBRATED_KNOBS:
            raise ValueError(
                f"knob must be one of {', '.join(CALIBRATED_KNOBS)}. Received: {knob!r}."
            )
        if knob == "budget":
            return self.budget
        return self.recall if stratum is None else self.strata.get(STRATA[stratum], self.recall)

    def cutoff_for(self, knob: str, value: Any, strata: np.ndarray) -> np.ndarray:
        """[B] float32 cut-offs.

        Args:
          knob: "recall" or "budget".
          value: The recall or the average items per query: one number or [B].
          strata: [B] indices into STRATA.

        Raises:
          ValueError: Another knob, or a value that is not a number.
        """
        values = np.broadcast_to(np.asarray(value, np.float64), np.shape(strata))
        if np.isnan(values).any():
            raise ValueError(f"{knob} must be a number. Received: NaN.")
        return self._by_stratum(strata, lambda stratum: self.map_of(knob, stratum).cutoff(values))

    def reachable(self, knob: str, value: float, strata: np.ndarray) -> np.ndarray:
        """[B] the knob's value, clipped to the range that the maps reach."""
        maps = [self.map_of(knob, stratum) for stratum in range(len(STRATA))]
        ends = np.array([[each.lowest, each.highest] for each in maps])[strata]
        return np.clip(value, ends[:, 0], ends[:, 1])

    def out_of_range_message(
        self, knob: str, value: float, stratum: int | None = None
    ) -> str | None:
        """One sentence if `value` is outside the range that the knob reaches, else None."""
        reached = self.map_of(knob, stratum)
        if reached.lowest <= value <= reached.highest:
            return None
        used = min(max(value, reached.lowest), reached.highest)
        digits = ".3f" if knob == "recall" else ".1f"
        kind = "queries" if stratum is None else f"{STRATA[stratum]} queries"
        return (
            f"{knob} must be from {reached.lowest:{digits}} to {reached.highest:{digits}}, the "
            f"range that {reached.queries} calibrate {kind} support. Received: {value:g}, "
            f"answered as {used:{digits}}."
        )

    def save(self, directory: Path) -> None:
        """Writes cutoff.json into a folder."""
        (directory / FILE_NAME).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> Calibration:
        """Reads cutoff.json of a folder; raises what `from_json` raises."""
        return cls.from_json((directory / FILE_NAME).read_text(encoding="utf-8"))

    def to_json(self) -> str:
        """JSON that `from_json` turns into the same calibration."""
        content = {"version": VERSION, **vars(self)}
        content.update((name, getattr(self, name).to_mapping()) for name in _MAPS)
        content["strata"] = {name: each.to_mapping() for name, each in self.strata.items()}
        content["law"] = self.law.to_mapping()
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """Parses the content of cutoff.json.

        Raises:
          UserError: Not JSON, another version, missing or unknown keys, maps that are not monotone.
        """
        try:
            content = json.loads(text)
        except ValueError as error:
            raise UserError(f"cutoff.json must be JSON. Received: {error}.") from None
        version = content.get("version") if isinstance(content, dict) else content
        if version != VERSION:
            raise UserError(f"cutoff.json must have version {VERSION}. Received: {version!r}.")
        keys = [field.name for field in fields(cls)]
        require_keys("cutoff.json", content, ("version", *keys))
        _require_types(content)
        strata = content["strata"]
        if not isinstance(strata, dict) or not set(strata) <= set(STRATA):
            raise UserError(f"strata must be among {', '.join(STRATA)}. Received: {strata!r}.")
        values = {name: content[name] for name in keys}
        for name in _MAPS:
            values[name] = KnobMap.from_mapping(name, content[name])
        values["strata"] = {
            name: KnobMap.from_mapping(f"strata.{name}", each) for name, each in strata.items()
        }
        values["law"] = LawWeights.from_mapping("law of cutoff.json", content["law"])
        return cls(**values)

    def _by_stratum(self, strata: np.ndarray, values_in: Callable[[int], np.ndarray]) -> np.ndarray:
        result = np.empty(np.shape(strata), np.float32)
        for stratum in range(len(STRATA)):
            chosen = np.asarray(strata) == stratum
            if chosen.any():
                result[chosen] = values_in(stratum)[chosen]
        return result


def _require_types(content: dict[str, Any]) -> None:
    texts = dict.fromkeys(("policy", "family"), str)
    whole = dict.fromkeys(("floor", "limit", "queries"), int)
    numbers = dict.fromkeys(("level_temperature", "least_known"), (int, float))
    kinds: dict[str, Any] = {**texts, **numbers, **whole}
    for name, kind in kinds.items():
        if not isinstance(content[name], kind) or isinstance(content[name], bool):
            raise UserError(
                f"{name} of cutoff.json must be a {'text' if kind is str else 'number'}. "
                f"Received: {content[name]!r}."
            )
    require_family(content["family"])


def calibrate(
    lists: RankedLists,
    strata: np.ndarray,
    policy: str,
    family: Family,
    level_temperature: float,
    config: Cutoff,
    share: KnobMap = TRUE_SHARE,
    signature_lists: RankedLists | None = None,
    known_share: np.ndarray | None = None,
    law: LawWeights | None = None,
) -> Calibration:
    """Fits the maps to calibrate queries.

    `lists` are their candidates, scored by `policy`; a list never exceeds the candidates. `strata`
    [Q] are indices into STRATA. `signature_lists` are scored as the query model scores them; None
    if that is the same. `known_share` [Q] are shares of known words; None: 0 for all.

    Raises:
      UserError: Too few queries.
    """
    require_enough(len(lists), config)
    known_share = np.zeros(1) if known_share is None else known_share
    least = max(1, config.min_calibration_queries // 4)
    parts = {name: np.asarray(strata) == index for index, name in enumerate(STRATA)}
    return Calibration(
        policy=policy,
        family=family,
        level_temperature=float(level_temperature),
        floor=config.floor,
        limit=config.limit,
        queries=len(lists),
        recall=recall_map(lists, config.floor, config.limit),
        strata={
            name: recall_map(lists.part(chosen), config.floor, config.limit)
            for name, chosen in parts.items()
            if chosen.sum() >= least
        },
        budget=budget_map(lists, config.floor, config.limit),
        signature=recall_map(signature_lists or lists, config.floor, config.limit),
        share=share,
        least_known=float(np.quantile(known_share, UNFAMILIAR)),
        law=law or initial_weights(),
    )


def require_enough(queries: int, config: Cutoff) -> None:
    """Raises UserError if there are too few queries to calibrate on."""
    if queries < config.min_calibration_queries:
        raise UserError(
            f"calibration must have at least {config.min_calibration_queries} queries with "
            f"held-out clicks (cutoff.min_calibration_queries). Received: {queries}."
        )


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

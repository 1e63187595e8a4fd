"""The knobs: from a share of the relevant to keep, or an average number of items, to the cut-off.

*Recall.* The loss of a query at cut-off c is 1 - recall(c), the share of its held-out clicks that a
list with floor and limit misses: between 0 and 1, and never falling as c rises. Conformal risk
control (Angelopoulos et al., 2022) takes, on n calibrate queries, the largest c with

    n / (n + 1) * mean_loss(c) + 1 / (n + 1) <= 1 - keep,

which is n / (n + 1) * mean_recall(c) >= keep. For another query of the same kind the expected
recall is then at least `keep`, whatever the model and however few the queries. The map holds at the
points of its grid, 99 shares and the ends, and is linear between them.

The share that a cut-off guarantees is thus n / (n + 1) * mean_recall(c): it begins at what the
floor alone keeps and ends at what all candidates hold. Beyond, the end is given, and `statement`
says so.

Head, torso and tail have maps of their own where they have a quarter of the queries that a
calibration needs; others use the overall map.

*Budget.* The average over queries of the items of a list, floor and limit applied.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.knob_map import KnobMap, require_keys
from pebr_tf.distributions.logit import Family, require_family
from pebr_tf.errors import UserError
from pebr_tf.metrics.ranked import RankedLists
from pebr_tf.metrics.strata import STRATA

VERSION = 1
SHARES = tuple(percent / 100 for percent in range(1, 100))
AVERAGES = 60
KNOBS = ("recall", "budget")
_KEYS = (
    "version", "policy", "family", "level_temperature", "floor", "limit", "queries", "recall",
    "strata", "budget",
)  # fmt: skip


@dataclass(frozen=True)
class Calibration:
    """What the knobs mean.

    Attributes:
      policy: The way to end a list whose score the cut-offs belong to; see `policies`.
      family: Which logit the towers were trained with.
      level_temperature: T of the level.
      floor: Items that a query always gets.
      limit: Items that a query never exceeds.
      queries: Calibrate queries with held-out clicks.
      recall: Share kept to cut-off, of all queries.
      strata: The same by stratum, for those with enough queries.
      budget: Average items to cut-off.
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

    def map_of(self, knob: str, stratum: int | None = None) -> KnobMap:
        """The map of a knob, for the queries of a stratum (its place in STRATA) or for all."""
        if knob not in KNOBS:
            raise ValueError(f"knob must be one of {', '.join(KNOBS)}. Received: {knob!r}.")
        if knob == "budget":
            return self.budget
        return self.recall if stratum is None else self.strata.get(STRATA[stratum], self.recall)

    def cutoff_for(self, knob: str, value: Any, strata: np.ndarray) -> np.ndarray:
        """[B] float32 cut-offs.

        Args:
          knob: "recall" or "budget".
          value: The share to keep, or the average items: one number or [B].
          strata: [B] places in STRATA.

        Raises:
          ValueError: Another knob, or a value that is not a number.
        """
        values = np.broadcast_to(np.asarray(value, np.float64), np.shape(strata))
        if np.isnan(values).any():
            raise ValueError(f"{knob} must be a number. Received: NaN.")
        return self._by_stratum(strata, lambda place: self.map_of(knob, place).cutoff(values))

    def expected_recall(self, cutoff: Any, strata: np.ndarray) -> np.ndarray:
        """[B] float32 shares that cut-offs keep: the inverse of the recall knob.

        Args:
          cutoff: One number or [B].
          strata: [B] places in STRATA.
        """
        cutoffs = np.broadcast_to(np.asarray(cutoff, np.float64), np.shape(strata))
        return self._by_stratum(strata, lambda place: self.map_of("recall", place).value(cutoffs))

    def promised(self, knob: str, value: float, strata: np.ndarray) -> np.ndarray:
        """[B] what asking for `value` promises: the value, held to what the maps reach."""
        maps = [self.map_of(knob, place) for place in range(len(STRATA))]
        ends = np.array([[each.lowest, each.highest] for each in maps])[strata]
        return np.clip(value, ends[:, 0], ends[:, 1])

    def statement(self, knob: str, value: float, stratum: int | None = None) -> str | None:
        """One sentence if `value` is beyond what the knob reaches, else None."""
        reached = self.map_of(knob, stratum)
        if reached.lowest <= value <= reached.highest:
            return None
        given = min(max(value, reached.lowest), reached.highest)
        digits = ".3f" if knob == "recall" else ".1f"
        kind = "queries" if stratum is None else f"{STRATA[stratum]} queries"
        return (
            f"{knob} must be from {reached.lowest:{digits}} to {reached.highest:{digits}}, which "
            f"is what {reached.queries} calibrate {kind} can vouch for. Received: {value:g}, "
            f"answered as {given:{digits}}."
        )

    def to_json(self) -> str:
        """JSON that `from_json` turns into the same calibration."""
        content = {name: getattr(self, name) for name in _KEYS[1:]}
        content["recall"], content["budget"] = self.recall.to_mapping(), self.budget.to_mapping()
        content["strata"] = {name: each.to_mapping() for name, each in self.strata.items()}
        return json.dumps({"version": VERSION, **content}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """The calibration in a cutoff.json.

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
        require_keys("cutoff.json", content, _KEYS)
        _require_types(content)
        strata = content["strata"]
        if not isinstance(strata, dict) or not set(strata) <= set(STRATA):
            raise UserError(f"strata must be among {', '.join(STRATA)}. Received: {strata!r}.")
        values = {name: content[name] for name in _KEYS[1:]}
        values["recall"] = KnobMap.from_mapping("recall", content["recall"])
        values["budget"] = KnobMap.from_mapping("budget", content["budget"])
        values["strata"] = {
            name: KnobMap.from_mapping(f"strata.{name}", each) for name, each in strata.items()
        }
        return cls(**values)

    def _by_stratum(self, strata: np.ndarray, values_in: Any) -> np.ndarray:
        result = np.empty(np.shape(strata), np.float32)
        for place in range(len(STRATA)):
            chosen = np.asarray(strata) == place
            if chosen.any():
                result[chosen] = values_in(place)[chosen]
        return result


def _require_types(content: dict[str, Any]) -> None:
    whole = dict.fromkeys(("floor", "limit", "queries"), int)
    kinds: dict[str, Any] = {
        "policy": str,
        "family": str,
        "level_temperature": (int, float),
        **whole,
    }
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
) -> Calibration:
    """Fits the maps to calibrate queries.

    Args:
      lists: Their candidates, scored by `policy`; a list never exceeds the candidates.
      strata: [Q] places in STRATA.
      policy: Which score that is.
      family: Which logit the towers were trained with.
      level_temperature: T of the level.
      config: For floor, limit and how many queries it takes.

    Raises:
      UserError: Too few queries.
    """
    require_enough(len(lists), config)
    least = max(1, config.min_calibration_queries // 4)
    parts = {name: np.asarray(strata) == place for place, name in enumerate(STRATA)}
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
    )


def require_enough(queries: int, config: Cutoff) -> None:
    """Refuses to calibrate on too few queries."""
    if queries < config.min_calibration_queries:
        raise UserError(
            f"calibration must have at least {config.min_calibration_queries} queries with "
            f"held-out clicks (cutoff.min_calibration_queries). Received: {queries}."
        )


def bounded(lists: RankedLists, counts: np.ndarray, floor: int, limit: int) -> np.ndarray:
    """[Q] counts with floor and limit, and no more than there are candidates."""
    return np.minimum(np.clip(counts, floor, limit), lists.lengths)


def recall_map(lists: RankedLists, floor: int, limit: int) -> KnobMap:
    """The map from the share kept to the cut-off, by conformal risk control."""
    queries = len(lists)
    floors = bounded(lists, np.zeros(queries, np.int64), floor, limit)
    limits = bounded(lists, lists.lengths, floor, limit)
    rows, ranks = lists.relevant.rows, lists.relevant.ranks
    moved = (ranks >= floors[rows]) & (ranks < limits[rows])
    rows, ranks = rows[moved], ranks[moved]
    scores = lists.at(rows, ranks)
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    gains = np.concatenate([[_share(lists, floors)], (1 / lists.totals[rows])[order]])
    gains[1:] /= queries
    # Recall rises only where a cut-off passes the score of a relevant item.
    kept = np.cumsum(gains) * queries / (queries + 1)
    cutoffs = np.concatenate([[_above(lists)], scores]).astype(np.float32)
    between = [share for share in SHARES if kept[0] < share < kept[-1]]
    asked = np.array([kept[0], *between, kept[-1]])
    # Sums such as ten tenths stray in the last bits.
    place = np.searchsorted(kept, asked - 1e-12)
    return KnobMap.through(asked, cutoffs[place], queries)


def budget_map(lists: RankedLists, floor: int, limit: int) -> KnobMap:
    """The map from the average number of items to the cut-off."""

    def average(cutoff: float) -> float:
        return float(bounded(lists, lists.counts_at(cutoff), floor, limit).mean())

    least = average(np.inf)
    most = float(bounded(lists, lists.lengths, floor, limit).mean())
    wanted = np.geomspace(max(least, 1 / len(lists)), most, AVERAGES if most > least else 0)
    capped = lists.head(limit)
    above = float(_above(lists))
    cutoffs = np.array([above, *(min(capped.cutoff_at(value, floor), above) for value in wanted)])
    # What a cut-off gives, not what it was looked up for: equal scores come together.
    asked = [average(cutoff) for cutoff in cutoffs]
    return KnobMap.through(np.array(asked), cutoffs, len(lists))


def _share(lists: RankedLists, counts: np.ndarray) -> float:
    return lists.figures(counts).recall


def _above(lists: RankedLists) -> np.float32:
    """A finite cut-off above every score, where only the floor is left."""
    best = lists.at(np.arange(len(lists)), np.zeros(len(lists), np.int64))
    highest = np.float32(best[best > -np.inf].max(initial=-1e30))
    return np.nextafter(highest, np.float32(np.inf))

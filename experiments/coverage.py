"""The guarantee of the recall knob, put to the test: many random halves of the same queries.

Conformal risk control guarantees that over draws of calibrate and test queries the mean
recall is at least what was requested. Every random half calibrates once and tests once; the errors
of the two nearly cancel, so that a few hundred draws tell the mean to a few ten-thousandths.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pebr_tf.cutoff.calibration import recall_map
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.metrics.ranked import RankedLists, Ranks

Fit = Callable[[RankedLists, int, int], KnobMap]
# A mean that is lower by more than so many of its standard errors is no chance.
ERRORS = 3.0


@dataclass(frozen=True)
class Coverage:
    """What random halves keep.

    Attributes:
      requested: [K] shares.
      recall: [S, K] macro recall of the half that a map was not fitted to; halves 2 i and 2 i + 1
        are each other's.
      reached: [K] whether the map of every half reaches so much.
      queries: Of both halves.
    """

    requested: np.ndarray
    recall: np.ndarray
    reached: np.ndarray
    queries: int

    @property
    def mean(self) -> np.ndarray:
        """[K] over the draws."""
        mean: np.ndarray = self.recall.mean(axis=0)
        return mean

    @property
    def standard_error(self) -> np.ndarray:
        """[K] of the mean, from pairs of halves, for these are independent."""
        pairs = self.recall.reshape(-1, 2, len(self.requested)).mean(axis=1)
        error: np.ndarray = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
        return error

    @property
    def chance(self) -> float:
        """How far a draw is from what was requested, over the shares that are reached; else NaN."""
        errors = np.abs(self.recall - self.requested)[:, self.reached]
        return float(errors.mean()) if errors.size else float("nan")

    @property
    def holds(self) -> np.ndarray:
        """[K] whether the mean is at least what was requested, but for chance; see ERRORS."""
        held: np.ndarray = self.mean >= self.requested - ERRORS * self.standard_error - 1e-12
        return held


def coverage(
    lists: RankedLists,
    requested: Sequence[float],
    draws: int,
    floor: int,
    limit: int,
    seed: int = 0,
    fit: Fit = recall_map,
) -> Coverage:
    """Calibrates on random halves and measures on the others.

    Args:
      lists: Of at least two queries, all of one kind.
      requested: Shares.
      draws: Even; half as many pairs of halves. At least 4, for a standard error.
      floor: Items that a query always gets.
      limit: Items that a query never exceeds.
      seed: Of the draws.
      fit: What makes a map from lists, floor and limit.

    Raises:
      ValueError: Too few draws or queries.
    """
    if draws < 4 or draws % 2 or len(lists) < 2:
        raise ValueError(
            "coverage must have an even number of draws from 4, and 2 queries. Received: "
            f"{draws} draws and {len(lists)} queries."
        )
    short = telling_part(lists, floor, limit)
    generator = np.random.default_rng(seed)
    wanted = np.asarray(requested, np.float64)
    recall = np.empty((draws, len(wanted)))
    reached = np.ones(len(wanted), bool)
    for pair in range(draws // 2):
        first = np.zeros(len(lists), bool)
        first[generator.permutation(len(lists))[: len(lists) // 2]] = True
        for place, half in enumerate((first, ~first)):
            found = fit(short.part(half), floor, limit)
            reached &= wanted <= found.highest
            recall[2 * pair + place] = _kept(short.part(~half), found.cutoff(wanted), floor)
    return Coverage(wanted, recall, reached, len(lists))


def telling_part(lists: RankedLists, floor: int, limit: int) -> RankedLists:
    """The same queries with all that decides a recall map: the first items and the relevant ones.

    A hundredth of the items, for which `recall_map` gives the same map, and every cut-off the same
    recall. Relevant items beyond the limit stay missed.
    """
    leading = max(floor, 1)
    rows, ranks = lists.relevant.rows, lists.relevant.ranks
    inside = (ranks >= leading) & (ranks < np.minimum(lists.lengths, limit)[rows])
    some, places = np.divmod(np.arange(len(lists) * leading), leading)
    there = places < lists.lengths[some]
    keys = np.unique(
        np.concatenate([_key(some[there], places[there]), _key(rows[inside], ranks[inside])])
    )
    taken, origin = keys >> 32, keys & 0xFFFFFFFF
    new = np.arange(len(keys)) - np.searchsorted(taken, taken)
    width = int(new.max(initial=0)) + 1
    scores = np.full((len(lists), width), -np.inf, np.float32)
    scores[taken, new] = lists.at(taken, origin)
    # What was not taken is no candidate, and so never found.
    wanted = _key(rows, np.minimum(ranks, 0xFFFFFFFF))
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    moved = np.where(keys[place] == wanted, new[place], width)
    return RankedLists(scores, Ranks(rows, moved), lists.totals)


def _key(rows: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    return (rows.astype(np.int64) << 32) + ranks


def _kept(lists: RankedLists, cutoffs: np.ndarray, floor: int) -> np.ndarray:
    """[K] macro recall of lists with a floor, at cut-offs [K]; no list is longer than the limit."""
    rows, ranks = lists.relevant.rows, lists.relevant.ranks
    inside = ranks < lists.lengths[rows]
    rows, ranks = rows[inside], ranks[inside]
    scores = np.where(ranks < floor, np.float32(np.inf), lists.at(rows, ranks))
    order = np.argsort(-scores, kind="stable")
    gains = np.concatenate([[0.0], np.cumsum((1 / lists.totals[rows])[order])])
    places = np.searchsorted(-scores[order], -cutoffs, side="right")
    share: np.ndarray = gains[places] / len(lists)
    return share

"""One way to end lists, measured at several averages, overall and by stratum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pebr_tf.metrics.ranked import RankedLists, summary
from pebr_tf.metrics.strata import STRATA

CURVE_POINTS = 20
Capped = Callable[[np.ndarray], np.ndarray]


def groups_of(strata: np.ndarray) -> dict[str, np.ndarray]:
    """Masks [Q] by name: all queries, then each stratum that has any.

    Args:
      strata: [Q] places in STRATA.
    """
    masks = {name: np.asarray(strata) == place for place, name in enumerate(STRATA)}
    everyone = np.ones(len(strata), bool)
    return {"overall": everyone, **{name: mask for name, mask in masks.items() if mask.any()}}


def by_group(
    lists: RankedLists, counts: np.ndarray, strata: np.ndarray, capped: Capped
) -> dict[str, Any]:
    """Figures of lists of `counts` [Q] items, overall and by stratum; see `summary`.

    Args:
      lists: The ranked candidates.
      counts: [Q] items of each list.
      strata: [Q] places in STRATA.
      capped: From counts to whether each list was cut by the limit, [Q].
    """
    cut = capped(counts)
    return {
        name: summary(lists.figures(counts, mask), cut[mask])
        for name, mask in groups_of(strata).items()
    }


def at_averages(
    lists: RankedLists, average_k: Sequence[int], strata: np.ndarray, capped: Capped
) -> dict[str, Any]:
    """Average to figures by group, each with the one cut-off that gives it to all queries."""
    return {
        str(k): by_group(lists, lists.counts_at(lists.cutoff_at(k)), strata, capped)
        for k in average_k
    }


def curve(lists: RankedLists, average_k: Sequence[int]) -> dict[str, list[float]]:
    """Macro precision and recall from one item a query to twice the largest average.

    An average that ties keep from being met, or that the candidates do not reach, is left out: the
    averages are those that the lists have, and rise.
    """
    most = min(2 * max(average_k), float(lists.lengths.mean()))
    wanted = np.unique([*np.geomspace(1, max(most, 1), CURVE_POINTS), *average_k])
    points: list[tuple[float, float, float]] = []
    for average in wanted[wanted <= max(most, 1)]:
        figures = lists.figures(lists.counts_at(lists.cutoff_at(float(average))))
        if figures.average > (points[-1][0] if points else 0):
            points.append((figures.average, figures.precision, figures.recall))
    names = ("average", "precision", "recall")
    return {name: [point[place] for point in points] for place, name in enumerate(names)}


def histogram(counts: np.ndarray) -> dict[str, list[int]]:
    """Queries by their number of items: 0, 1, 2 to 3, 4 to 7 and so on.

    Returns:
      `edges` [E + 1] and `queries` [E]; the last edge is not part of the last bin.
    """
    doublings = int(np.max(counts, initial=1)).bit_length()
    edges = np.array([0, *(1 << place for place in range(doublings + 1))])
    queries = np.histogram(counts, edges)[0]
    return {"edges": edges.tolist(), "queries": queries.tolist()}

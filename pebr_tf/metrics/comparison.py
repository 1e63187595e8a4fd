"""One policy measured at several averages, overall and by stratum."""

from collections.abc import Callable, Sequence

import numpy as np

from pebr_tf.metrics.ranked import ListSummary, RankedLists
from pebr_tf.metrics.results import CountHistogram, Curve
from pebr_tf.metrics.strata import STRATA

CURVE_POINTS = 20
# From the lengths [Q] of lists to whether each was cut by the limit [Q].
IsTruncated = Callable[[np.ndarray], np.ndarray]


def groups_of(strata: np.ndarray) -> dict[str, np.ndarray]:
    """Masks [Q] by name: all queries, then each stratum that has any; `strata` [Q] indices."""
    masks = {name: np.asarray(strata) == index for index, name in enumerate(STRATA)}
    everyone = np.ones(len(strata), bool)
    return {"overall": everyone, **{name: mask for name, mask in masks.items() if mask.any()}}


def by_group(
    lists: RankedLists, counts: np.ndarray, strata: np.ndarray, is_truncated: IsTruncated
) -> dict[str, ListSummary]:
    """Summaries of lists of `counts` [Q] items, overall and by stratum [Q]."""
    truncated = is_truncated(counts)
    return {
        name: lists.figures(counts, mask, truncated) for name, mask in groups_of(strata).items()
    }


def at_averages(
    lists: RankedLists, average_k: Sequence[int], strata: np.ndarray, is_truncated: IsTruncated
) -> dict[int, dict[str, ListSummary]]:
    """Average -> group -> summary, each at the one cut-off that gives this average."""
    return {
        k: by_group(lists, lists.counts_at(lists.cutoff_at(k)), strata, is_truncated)
        for k in average_k
    }


def curve(lists: RankedLists, average_k: Sequence[int]) -> Curve:
    """Macro precision and recall from one item per query to twice the largest average.

    Averages that ties or too few candidates make impossible are left out. The averages of the curve
    are those that the lists have, and rise.
    """
    largest = max(min(2 * max(average_k), float(lists.lengths.mean())), 1)
    wanted = np.unique([*np.geomspace(1, largest, CURVE_POINTS), *average_k])
    found = Curve([], [], [])
    for average in wanted[wanted <= largest]:
        figures = lists.figures(lists.counts_at(lists.cutoff_at(float(average))))
        if figures.average > (found.average[-1] if found.average else 0):
            found.average.append(figures.average)
            found.precision.append(figures.precision)
            found.recall.append(figures.recall)
    return found


def count_histogram(counts: np.ndarray) -> CountHistogram:
    """Queries by their number of items [Q]: 0, 1, 2 to 3, 4 to 7 and so on."""
    doublings = int(np.max(counts, initial=1)).bit_length()
    edges = np.array([0, *(1 << power for power in range(doublings + 1))])
    return CountHistogram(edges.tolist(), np.histogram(counts, edges)[0].tolist())

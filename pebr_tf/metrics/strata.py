"""Head, torso and tail queries, by their share of the clicks."""

import numpy as np

from pebr_tf.config import Strata

STRATA = ("head", "torso", "tail")


def strata_of(clicks: np.ndarray, shares: Strata) -> np.ndarray:
    """[Q] int8, the index into STRATA of each query, by its clicks [Q] in the training split.

    Queries are sorted by clicks, most first. A query belongs to the stratum in which its clicks
    begin, so that there is a head even if one query has most of the clicks. Queries with equally
    many clicks share a stratum; a query without clicks is tail.
    """
    clicks = np.asarray(clicks, np.float64)
    click_counts, queries = np.unique(clicks, return_counts=True)
    head, torso = first_of_strata(click_counts, queries, shares)
    return ((clicks < head).astype(np.int8) + (clicks < torso)).astype(np.int8)


def first_of_strata(clicks: np.ndarray, queries: np.ndarray, shares: Strata) -> tuple[float, float]:
    """The fewest clicks of a head query and of a torso query; infinity if there is none.

    Where few queries have most of the clicks, head and torso are extended to `shares.min_queries`
    each, or to a third of the queries with clicks: of fewer queries nothing can be measured.
    `clicks` [M] are distinct numbers of clicks, `queries` [M] counts their queries.
    """
    order = np.argsort(-np.asarray(clicks, np.float64))
    click_counts = np.asarray(clicks, np.float64)[order]
    number = np.where(click_counts > 0, np.asarray(queries)[order], 0)
    clicks_of = click_counts * number
    clicks_before, queries_before = (np.cumsum(each) - each for each in (clicks_of, number))
    least = min(shares.min_queries, number.sum() / 3)

    def first(share: float, strata: int) -> float:
        # Sums of shares such as .5 + .3 are off in the last bits.
        inside = clicks_before < share * clicks_of.sum() * (1 - 1e-9)
        inside |= queries_before < strata * least
        return float(click_counts[inside & (click_counts > 0)].min(initial=np.inf))

    return first(shares.head, 1), first(shares.head + shares.torso, 2)

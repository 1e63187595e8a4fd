"""Head, torso and tail queries, by their share of the clicks."""

from __future__ import annotations

import numpy as np

from pebr_tf.config import Strata

STRATA = ("head", "torso", "tail")


def strata_of(clicks: np.ndarray, shares: Strata) -> np.ndarray:
    """[Q] int8, the index into STRATA of each query.

    Queries are sorted by clicks, most first. A query belongs to the stratum in which its clicks
    begin, so that there is a head even if one query has most of the clicks. Queries with equally
    many clicks share a stratum.

    Args:
      clicks: [Q] clicks of each query in the training split; a query without clicks is tail.
      shares: Shares of the clicks.
    """
    clicks = np.asarray(clicks, np.float64)
    levels, queries = np.unique(clicks, return_counts=True)
    head, torso = first_of_strata(levels, queries, shares)
    return ((clicks < head).astype(np.int8) + (clicks < torso)).astype(np.int8)


def first_of_strata(clicks: np.ndarray, queries: np.ndarray, shares: Strata) -> tuple[float, float]:
    """The fewest clicks of a head query and of a torso query; infinity if there is none.

    `clicks` [M] are distinct numbers of clicks, `queries` [M] counts their queries.
    """
    order = np.argsort(-np.asarray(clicks, np.float64))
    level = np.asarray(clicks, np.float64)[order]
    of_level = level * np.asarray(queries)[order]
    before = np.cumsum(of_level) - of_level
    # Sums of shares such as .5 + .3 are off in the last bits.
    ends = np.array([shares.head, shares.head + shares.torso]) * of_level.sum() * (1 - 1e-9)
    head, torso = (level[(before < end) & (level > 0)].min(initial=np.inf) for end in ends)
    return float(head), float(torso)

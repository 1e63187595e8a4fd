"""Head, torso and tail queries, by their share of the clicks."""

from __future__ import annotations

import numpy as np

from pebr_tf.config import Strata

STRATA = ("head", "torso", "tail")


def strata_of(clicks: np.ndarray, shares: Strata) -> np.ndarray:
    """[Q] int8, the place in STRATA of each query.

    Queries are taken most clicked first. One belongs to the stratum in which its clicks begin, so
    that there is a head even if one query has most of the clicks; equal ones stay together.

    Args:
      clicks: [Q] clicks of each query in the training split; a query without one is tail.
      shares: Shares of the clicks.
    """
    clicks = np.asarray(clicks, np.float64)
    levels, place = np.unique(-clicks, return_inverse=True)
    of_level = np.bincount(place, clicks, len(levels))
    before = np.cumsum(of_level) - of_level
    # Sums of shares such as .5 + .3 stray in the last bits.
    ends = np.array([shares.head, shares.head + shares.torso]) * clicks.sum() * (1 - 1e-9)
    strata = np.searchsorted(ends, before, side="right")
    return np.where(clicks > 0, strata[place], len(STRATA) - 1).astype(np.int8)

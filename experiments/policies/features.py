"""What the learned policies of experiments need beyond cosines."""

from collections.abc import Sequence

import numpy as np

from pebr_tf.cutoff.candidates import Candidates


def breadth_with_levels(candidates: Candidates, level_temperatures: Sequence[float]) -> np.ndarray:
    """[Q] breadth of the queries.

    Raises:
      ValueError: The queries have no breadth, or levels at some level temperature are missing.
    """
    breadth = candidates.queries.breadth
    if breadth is None or not set(level_temperatures) <= set(candidates.levels):
        raise ValueError(
            f"candidates must have a breadth and levels at {level_temperatures}. Received: "
            f"{'no' if breadth is None else 'a'} breadth, levels at {tuple(candidates.levels)}."
        )
    return breadth

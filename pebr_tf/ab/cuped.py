"""CUPED: lowers the variance by subtracting what the users' past predicts; see docs/ab.md."""

from collections.abc import Sequence

import numpy as np

from pebr_tf.ab.estimate import Estimate, mean_variance


def spread(past: Sequence[np.ndarray]) -> np.ndarray:
    """[P] standard deviations within arms of the past, which is [n, P] for each arm."""
    squares = sum(np.square(x - x.mean(axis=0)).sum(axis=0) for x in past)
    return np.sqrt(squares / sum(map(len, past)))


def adjusted(
    values: Sequence[float], deviations: Sequence[np.ndarray], past: Sequence[np.ndarray]
) -> list[Estimate]:
    """The metric of each arm, less what the past predicts.

    For each arm, `deviations` are [n], linearised, with mean 0, and `past` is [n, P] with a spread
    above 0 in each column.
    """
    scale = spread(past)
    centre = sum(x.sum(axis=0) for x in past) / sum(map(len, past))
    means = [x.mean(axis=0) for x in past]
    centred = [(x - mean) / scale for x, mean in zip(past, means, strict=True)]
    # A pseudo-inverse, because one past may be a multiple of another.
    gram = sum(x.T @ x for x in centred)
    moments = sum(x.T @ y for x, y in zip(centred, deviations, strict=True))
    theta = np.linalg.pinv(gram, hermitian=True) @ moments
    return [
        Estimate(
            value=float(value - (mean - centre) / scale @ theta),
            variance=mean_variance(rest - x @ theta),
        )
        for value, rest, x, mean in zip(values, deviations, centred, means, strict=True)
    ]

"""CUPED: lowers the variance by subtracting what the users' past predicts (Deng, WSDM 2013).

With x_i the past of user i (one column or more) and L_i the linearised metric of `estimate`,

    theta = argmin  sum over arms and users of (L_i - theta' (x_i - mean of x in the arm))^2
    R'    = R - theta' (mean of x in the arm - mean of x over all arms)
    Var R' = that of the mean of L_i - theta' (x_i - mean of x in the arm)

The past precedes the assignment to arms, so its mean differs between them only by chance: R' and R
estimate the same value. Where the past has correlation rho with the metric, the variance falls to
1 - rho^2 of what it was. A ratio takes the past of its numerator and of its denominator as two
columns, which holds the linearised past ratio as one of their combinations.
"""

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

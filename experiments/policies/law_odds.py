"""Laws of the relevant cosines as a score: the log odds of their CDF, for many items of a query.

A policy that keeps a share of a query's law retrieves s iff P(x >= s) <= recall. With F the CDF,
that is one cut-off on

    score = log F(s) - log(1 - F(s)) >= log((1 - recall) / recall),

which tells items apart in both tails, where F or 1 - F has no digits left.

Both families are one, the density z^(alpha - 1) * (1 - z)^(beta - 1) * exp(rate * z).
`distributions` has its exact CDF, a special function for each value; here a query has thousands of
items, and the mass of cells is summed instead, in logarithms, from both ends. The cells are equal
in x = log(z / (1 - z)), where the log density alpha * log z + beta * log(1 - z) + rate * z has no
pole and becomes a straight line towards both ends.
"""

from typing import Any

import numpy as np

from pebr_tf.cutoff.candidates import ROWS

# From a cosine of -.9993 to the last float32 below 1.
CELLS, LOW, HIGH = 3_072, -8.0, 17.0


def law_log_odds(cosines: np.ndarray, alpha: Any, beta: Any, rate: Any = 0.0) -> np.ndarray:
    """[Q, M] float32 log odds that a query's law lies below each cosine; -inf stays -inf.

    Within .02 of the exact value for alpha from 5 and both parameters up to 2,000, and never rising
    where cosines fall.

    Args:
      cosines: [Q, M] float32, falling in a row; -inf where there is no candidate.
      alpha: [Q] first parameters, above 0.
      beta: [Q] second parameters, above 0.
      rate: [Q] 2 / tau of the exponential family; 0: the Beta law.
    """
    columns = (np.asarray(value, np.float64) for value in (alpha, beta, rate))
    powers = np.stack([np.broadcast_to(column, len(cosines)) for column in columns], axis=1)
    scores = np.empty(cosines.shape, np.float32)
    for begin in range(0, len(cosines), ROWS):
        part = slice(begin, begin + ROWS)
        scores[part] = _between(cosines[part], _odds_at_edges(powers[part]))
    # Rounding may turn two neighbours around.
    return np.minimum.accumulate(scores, axis=1, out=scores)


def share_kept(log_odds: Any) -> np.ndarray:
    """The share of the law that a cut-off on the log odds keeps: 1 / (1 + exp(log_odds))."""
    return np.exp(-np.logaddexp(0.0, np.asarray(log_odds, np.float64)))


def _odds_at_edges(powers: np.ndarray) -> np.ndarray:
    """[B, CELLS + 1] log odds at the edges of the cells, for alpha, beta and rate [B, 3]."""
    edges = np.linspace(LOW, HIGH, CELLS + 1)
    density = _log_density(powers, edges)
    # The integral over a cell whose log density is a line from one edge to the other.
    half = np.maximum(np.abs(np.diff(density, axis=1)) / 2, 1e-4)
    inside = np.maximum(density[:, 1:], density[:, :-1]) + np.log(-np.expm1(-2 * half) / half)
    inside += np.log((HIGH - LOW) / CELLS / 2)
    # Beyond an end the density falls as exp(alpha * x), or as exp(-beta * x).
    first, last = density[:, :1] - np.log(powers[:, :1]), density[:, -1:] - np.log(powers[:, 1:2])
    below = np.logaddexp.accumulate(np.concatenate([first, inside], axis=1), axis=1)
    above = np.logaddexp.accumulate(np.concatenate([last, inside[:, ::-1]], axis=1), axis=1)
    odds: np.ndarray = below - above[:, ::-1]
    return odds


def _log_density(powers: np.ndarray, points: np.ndarray) -> np.ndarray:
    """[B, G] log densities of x at points [G], without their normaliser."""
    log_z, log_rest = -np.logaddexp(0, -points), -np.logaddexp(0, points)
    density: np.ndarray = powers @ np.stack([log_z, log_rest, np.exp(log_z)])
    return density


def _between(cosines: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """[B, M] log odds at cosines, from those [B, CELLS + 1] at the edges."""
    z = np.clip((1 + cosines.astype(np.float64)) / 2, *(1 / (1 + np.exp([-LOW, -HIGH]))))
    place = np.clip((np.log(z / (1 - z)) - LOW) * (CELLS / (HIGH - LOW)), 0, CELLS)
    edge = np.minimum(place.astype(np.int64), CELLS - 1)
    low = np.take_along_axis(odds, edge, axis=1)
    high = np.take_along_axis(odds, edge + 1, axis=1)
    return np.where(cosines == -np.inf, -np.inf, low + (place - edge) * (high - low))

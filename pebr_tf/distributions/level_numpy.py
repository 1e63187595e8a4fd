"""The level in NumPy: the formulas of `logit` and `level` for whole catalogues and for searches.

A TensorFlow call costs more than the probe of a query. A test compares both implementations.
"""

from collections.abc import Sequence

import numpy as np

from pebr_tf.distributions.logit import UNIT_EPSILON, Family


def logits_of(
    cosines: np.ndarray, tau: np.ndarray, family: Family, out: np.ndarray | None = None
) -> np.ndarray:
    """[B, M] float32 logits of cosines [B, M] and temperatures [B]; see `relevance_logit`.

    `out` [B, M] receives the result, if given.
    """
    if family == "exponential":
        return np.divide(cosines, tau[:, None], out=out)
    unit = np.add(cosines, 1, out=out)
    unit *= np.float32(0.5)
    lowest = np.float32(UNIT_EPSILON)
    tangents = None
    if not unit.min(initial=1) > lowest:
        tangents = np.minimum(unit / lowest - 1, 0)
        np.maximum(unit, lowest, out=unit)
    logits = np.log(unit, out=unit)
    if tangents is not None:
        logits += tangents
    return np.divide(logits, tau[:, None], out=logits)


def cosines_of(logits: np.ndarray, tau: np.ndarray, family: Family) -> np.ndarray:
    """[B] float32 cosines of logits [B]; see `cosine_of_logit`."""
    if family == "exponential":
        return (logits * tau).astype(np.float32)
    with np.errstate(over="ignore"):
        return (2 * np.exp(logits * tau) - 1).astype(np.float32)


def masses_of(
    logits: np.ndarray, top: np.ndarray, level_temperature: float, out: np.ndarray | None = None
) -> np.ndarray:
    """[B, M] what each item adds to the sum of `level_of_mass`, for T above 0.

    This is exp((logit - top) / T), or the logit itself where T is infinite. `top` [B] keeps the
    exponentials in range. `out` [B, M] receives the result, if given; it may be `logits` [B, M].
    """
    if np.isinf(level_temperature):
        return logits
    masses = np.subtract(logits, top[:, None], out=out)
    if level_temperature != 1:
        masses *= np.float32(1 / level_temperature)
    # A sampled item far above `top` is one of the best items, which the caller leaves out.
    with np.errstate(over="ignore"):
        return np.exp(masses, out=masses)


def level_of_mass(
    top: np.ndarray, mass: np.ndarray, total: float | np.ndarray, level_temperature: float
) -> np.ndarray:
    """[B] levels from summed masses [B] of `total` items, for T above 0."""
    if np.isinf(level_temperature):
        return mass / total
    return top + level_temperature * np.log(mass / total)


def levels_at(
    logits: np.ndarray, level_temperatures: Sequence[float], weights: np.ndarray | None = None
) -> np.ndarray:
    """[B, T] levels at finite level temperatures [T] from logits [B, N]; see `exact_level`.

    `weights` [B, N] are the numbers of items that the logits represent; None: 1.
    """
    top = logits.max(axis=1)
    scratch = np.empty_like(logits)
    total = logits.shape[1] if weights is None else weights.sum(axis=1)
    columns = []
    for level_temperature in level_temperatures:
        if level_temperature == 0:
            columns.append(top)
            continue
        masses = masses_of(logits, top, level_temperature, out=scratch)
        if weights is not None:
            masses *= weights
        columns.append(level_of_mass(top, masses.sum(axis=1), total, level_temperature))
    return np.stack(columns, axis=1)

"""Estimates of an arm and the comparison of two: differences, lifts, intervals and p-values.

docs/ab.md has the formulas.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

# Beyond this margin of the log lift, an interval spans about -100% to thousands of percent.
MAX_LOG_MARGIN = 10.0


@dataclass(frozen=True)
class Estimate:
    """A metric of one arm with its variance; `users` is their number if it is a share of them."""

    value: float
    variance: float
    users: int | None = None


@dataclass(frozen=True)
class ArmComparison:
    """The comparison of an arm with control: two values, each with the ends of its interval.

    What cannot be computed is NaN. The lift is the difference as a share of control's value;
    `p_value` is the probability of such a difference, or a larger one, without any effect.
    """

    difference: float
    low: float
    high: float
    lift: float
    lift_low: float
    lift_high: float
    p_value: float


def linearised(numerator: np.ndarray, denominator: np.ndarray) -> tuple[float, np.ndarray]:
    """A ratio of sums R, and the deviation of each user from it, [n] with mean 0.

    `numerator` and `denominator` are [n], of the users of one arm; the latter from 0 up, not all 0.
    """
    value = float(numerator.sum() / denominator.sum())
    return value, (numerator - value * denominator) / denominator.mean()


def mean_variance(deviations: np.ndarray) -> float:
    """The variance of a mean, from [n] deviations with mean 0."""
    users = len(deviations)
    return float(np.square(deviations).sum() / (users - 1) / users)


def share(value: float, users: int) -> Estimate:
    return Estimate(value, value * (1 - value) / users, users)


def compare(control: Estimate, arm: Estimate, confidence: float) -> ArmComparison:
    """Compares an arm with control; `confidence` is in (0, 1)."""
    z = float(special.ndtri(0.5 + confidence / 2))
    difference = arm.value - control.value
    variance = control.variance + arm.variance
    margin = z * math.sqrt(variance)
    if control.users and arm.users:
        # Without an effect, both are estimates of one share.
        users = control.users + arm.users
        pooled = (control.value * control.users + arm.value * arm.users) / users
        variance = pooled * (1 - pooled) * (1 / control.users + 1 / arm.users)
    lift, lift_low, lift_high = _lift(control, arm, z)
    return ArmComparison(
        difference=difference,
        low=difference - margin,
        high=difference + margin,
        lift=lift,
        lift_low=lift_low,
        lift_high=lift_high,
        p_value=_p_value(difference, variance),
    )


def holm(p_values: np.ndarray) -> np.ndarray:
    """[A] p-values corrected for their number by the method of Holm; NaN does not count."""
    adjusted = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1)
    return adjusted


def _lift(control: Estimate, arm: Estimate, z: float) -> tuple[float, float, float]:
    if control.value <= 0:
        return math.nan, math.nan, math.nan
    ratio = arm.value / control.value
    if ratio <= 0:
        # The lift is -100%, and its logarithm does not exist.
        return ratio - 1, math.nan, math.nan
    margin = z * math.hypot(
        math.sqrt(control.variance) / control.value, math.sqrt(arm.variance) / arm.value
    )
    if margin > MAX_LOG_MARGIN:
        return ratio - 1, math.nan, math.nan
    factor = math.exp(margin)
    return ratio - 1, ratio / factor - 1, ratio * factor - 1


def _p_value(difference: float, variance: float) -> float:
    if variance <= 0:
        return math.nan
    return math.erfc(abs(difference) / math.sqrt(2 * variance))

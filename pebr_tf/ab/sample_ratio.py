"""The sample-ratio check: whether the arms have their planned shares of the users (docs/ab.md)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pebr_tf.errors import UserError

# A p-value below this is reported as a mismatch.
ALARM = 0.001


@dataclass(frozen=True)
class SampleRatio:
    """Users of each arm against what was expected, by Pearson's chi-squared test.

    Shares are [A]; the statistic has A - 1 degrees of freedom; `p_value` is the probability of such
    a split, or a worse one, by chance; a mismatch is a p-value below ALARM.
    """

    shares: tuple[float, ...]
    expected: tuple[float, ...]
    statistic: float
    p_value: float
    mismatch: bool


def check(users: np.ndarray, weights: np.ndarray) -> SampleRatio:
    """Tests the users [A] of each arm against weights [A] above 0, the planned shares."""
    expected = weights / weights.sum()
    counts = expected * users.sum()
    statistic = float((np.square(users - counts) / counts).sum())
    p_value = float(special.chdtrc(len(users) - 1, statistic))
    return SampleRatio(
        shares=tuple((users / users.sum()).tolist()),
        expected=tuple(expected.tolist()),
        statistic=statistic,
        p_value=p_value,
        mismatch=p_value < ALARM,
    )


def weights_of(text: str | None, names: Sequence[str]) -> np.ndarray:
    """[A] weights of the arms by a text such as `control=1,treatment=1`; all equal without one."""
    if text is None:
        return np.ones(len(names))
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, weight = part.rpartition("=")
        name = name.strip()
        if not equals or name in weights or not _is_weight(weight):
            raise UserError(
                "--expected must be ARM=WEIGHT,..., with each arm once and weights above 0. "
                f"Received: {text}."
            )
        weights[name] = float(weight)
    if set(weights) != set(names):
        raise UserError(
            f"--expected must name the arms of the file: {', '.join(names)}. "
            f"Received: {', '.join(weights)}."
        )
    return np.array([weights[name] for name in names])


def _is_weight(text: str) -> bool:
    try:
        return 0 < float(text) < np.inf
    except ValueError:
        return False

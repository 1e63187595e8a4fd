"""From the knobs that a user turns to what ends a list: a policy and its cut-offs."""

from __future__ import annotations

from typing import Any

import numpy as np

from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.metrics import STRATA
from serving.errors import InvalidArgument

KNOBS = ("recall", "budget", "top_k", "score")


def check_knob(knob: str, value: Any, floor: int, limit: int) -> float:
    """The value of a knob as a number.

    Args:
      knob: One of KNOBS.
      value: The share of the relevant to keep, the average items, the items, or the least cosine.
      floor: Items that a query always gets.
      limit: Items that a query never exceeds.

    Raises:
      InvalidArgument: The knob is unknown, or its value is out of range.
    """
    if knob not in KNOBS:
        raise InvalidArgument(
            "knob", f"knob must be one of {', '.join(KNOBS)}. Received: {knob!r}."
        )
    least = max(floor, 1)
    number = float(value) if _is_number(value) else float("nan")
    valid, requirement = {
        "recall": (0 < number < 1, "a number above 0 and below 1"),
        "budget": (least <= number <= limit, f"a number from {least} to {limit}"),
        "top_k": (
            least <= number <= limit and number.is_integer(),
            f"a whole number from {least} to {limit}",
        ),
        "score": (-1 <= number <= 1, "a number from -1 to 1"),
    }[knob]
    if not valid:
        raise InvalidArgument(knob, f"{knob} must be {requirement}. Received: {value!r}.")
    return number


def cut_of(calibration: Calibration, knob: str, value: float) -> tuple[str, np.ndarray]:
    """What ends a list by a knob: a policy, and its cut-offs [3] by stratum, float32."""
    strata = np.arange(len(STRATA))
    if knob in ("recall", "budget"):
        return calibration.policy, calibration.cutoff_for(knob, value, strata)
    # The score of the policy top_k is -rank, with ranks from 0.
    cutoff = value if knob == "score" else 1 - value
    return knob, np.full(len(STRATA), cutoff, np.float32)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)

"""Checks the knob of a request."""

from __future__ import annotations

from typing import Any

import numpy as np

from pebr_tf.config.retrieval import KNOBS, knob_requirement
from serving.errors import InvalidArgument


def check_knob(knob: str, value: Any, floor: int, limit: int) -> float:
    """The value of a knob as a number.

    Raises:
      InvalidArgument: The knob is unknown, or its value is out of range.
    """
    if knob not in KNOBS:
        raise InvalidArgument(
            "knob", f"knob must be one of {', '.join(KNOBS)}. Received: {knob!r}."
        )
    number = float(value) if _is_number(value) else float("nan")
    if requirement := knob_requirement(knob, number, floor, limit):
        raise InvalidArgument(knob, f"{knob} must be {requirement}. Received: {value!r}.")
    return number


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)

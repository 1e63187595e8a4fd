"""From numbers to places in a chart, and the round numbers beside an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Ticks stray in the last bits, and one at the very end of an axis belongs to it.
_SLACK = 1e-9


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic axis.

    Attributes:
      low: Number at `start`; above 0 if logarithmic.
      high: Number at `end`, above `low`.
      start: Place of `low`.
      end: Place of `high`; below `start` for an axis that points up.
      log: Whether equal steps are equal ratios.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and not self.low > 0):
            raise ValueError(
                "low must be below high, and above 0 if log. Received: "
                f"{self.low} and {self.high}, log {self.log}."
            )

    def __call__(self, value: float) -> float:
        """The place of `value`, rounded to a tenth; values beyond the axis are put at its end."""
        value = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 1)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers on the axis, at most `most` of them."""
        if self.log:
            return log_ticks(self.low, self.high, most)
        return linear_ticks(self.low, self.high, most)


def step_of(low: float, high: float, most: int) -> float:
    """The least of 1, 2, 5 times a power of ten that cuts [low, high] into fewer than `most`."""
    rough = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= rough * (1 - _SLACK))


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten in [low, high]."""
    step = step_of(low, high, most)
    first = math.ceil(low / step - _SLACK)
    last = math.floor(high / step + _SLACK)
    return [round(i * step, 12) for i in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """1, 2 and 5 times powers of ten in [low, high]; fewer of them, evenly, if that is too many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [
            tick
            for decade in decades
            for factor in factors
            if low * (1 - _SLACK)
            <= (tick := round(factor * 10.0**decade, 12))
            <= high * (1 + _SLACK)
        ]
        if len(ticks) <= most:
            break
    else:
        ticks = ticks[:: math.ceil(len(ticks) / most)]
    # Less than two say nothing about an axis that spans less than a step.
    return ticks if len(ticks) > 1 else linear_ticks(low, high, most)


def rounded_out(low: float, high: float, most: int = 6) -> tuple[float, float]:
    """The least range that holds [low, high] and begins and ends at ticks."""
    if low == high:
        low, high = low - 0.05, high + 0.05
    step = step_of(low, high, most)
    return (
        round(math.floor(low / step + _SLACK) * step, 12),
        round(math.ceil(high / step - _SLACK) * step, 12),
    )

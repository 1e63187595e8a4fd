"""A monotone map from the value of a knob to the cut-off of a policy, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class KnobMap:
    """Linear between the points of a grid, constant beyond its ends.

    Attributes:
      knob_values: [G] rising values of the knob.
      cutoffs: [G] falling cut-offs, float32.
      queries: Number of queries that the map was fitted to.
    """

    knob_values: np.ndarray
    cutoffs: np.ndarray
    queries: int

    def __post_init__(self) -> None:
        values, cutoffs = self.knob_values, self.cutoffs
        same = values.ndim == 1 and values.shape == cutoffs.shape
        if not same or not len(values) or not np.isfinite([values, cutoffs]).all():
            raise ValueError("a map must have as many knob values as cut-offs, all finite.")
        if not ((np.diff(values) > 0).all() and (np.diff(cutoffs) < 0).all()):
            raise ValueError("a map must rise in the knob values and fall in the cut-offs.")

    @classmethod
    def through(cls, knob_values: np.ndarray, cutoffs: np.ndarray, queries: int) -> KnobMap:
        """A map through points in rising order of `knob_values` [G], whose cut-offs may repeat.

        A repeated cut-off is lowered to the next float32, so that the map has an inverse; a
        repeated value keeps its lowest cut-off.
        """
        cutoffs = np.minimum.accumulate(np.asarray(cutoffs, np.float32))
        last = np.append(np.diff(knob_values) > 0, True)
        values, cutoffs = np.asarray(knob_values, np.float64)[last], cutoffs[last]
        if len(values) == 1:
            # A map needs two points: the other one is as close as float32 allows.
            values = np.array([np.nextafter(np.float32(values[0]), np.float32(-1)), values[0]])
            cutoffs = np.repeat(cutoffs, 2)
        for index in range(1, len(cutoffs)):
            below = np.nextafter(cutoffs[index - 1], np.float32(-np.inf))
            cutoffs[index] = min(cutoffs[index], below)
        return cls(values, cutoffs, queries)

    @property
    def lowest(self) -> float:
        """The least knob value that the map reaches; smaller ones give the same list."""
        return float(self.knob_values[0])

    @property
    def highest(self) -> float:
        """The greatest knob value that the map reaches; greater ones give the same list."""
        return float(self.knob_values[-1])

    def cutoff(self, value: Any) -> np.ndarray:
        """Cut-offs, float32, of values of the knob; same shape."""
        return np.interp(value, self.knob_values, self.cutoffs).astype(np.float32)

    def value(self, cutoff: Any) -> np.ndarray:
        """Values of the knob, float32, of cut-offs; the inverse of `cutoff`."""
        value = np.interp(np.negative(cutoff), -self.cutoffs.astype(np.float64), self.knob_values)
        return value.astype(np.float32)

    def to_mapping(self) -> dict[str, Any]:
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}

    @classmethod
    def from_mapping(cls, mapping: dict[str, Any]) -> KnobMap:
        values = np.asarray(mapping["knob_values"], np.float64)
        return cls(values, np.asarray(mapping["cutoffs"], np.float32), int(mapping["queries"]))

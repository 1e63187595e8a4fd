"""A monotone map from what a user asks for to the internal cut-off, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebr_tf.errors import UserError


@dataclass(frozen=True)
class KnobMap:
    """Linear between the points of a grid; beyond its ends, the value at the end.

    Attributes:
      asked: [G] rising values of the knob.
      cutoffs: [G] falling cut-offs, float32.
      queries: Queries that it was fitted to.
    """

    asked: np.ndarray
    cutoffs: np.ndarray
    queries: int

    def __post_init__(self) -> None:
        same = self.asked.ndim == 1 and self.asked.shape == self.cutoffs.shape
        if not same or not len(self.asked) or not np.isfinite([self.asked, self.cutoffs]).all():
            raise ValueError("a map must have as many asked values as cut-offs, all finite.")
        if not ((np.diff(self.asked) > 0).all() and (np.diff(self.cutoffs) < 0).all()):
            raise ValueError("a map must rise in what is asked and fall in the cut-off.")

    @classmethod
    def through(cls, asked: np.ndarray, cutoffs: np.ndarray, queries: int) -> KnobMap:
        """A map through points in rising order of `asked` [G], whose cut-offs may repeat.

        A repeated cut-off is lowered by the least that float32 tells apart, so that the map has an
        inverse; a repeated value keeps its lowest cut-off.
        """
        cutoffs = np.minimum.accumulate(np.asarray(cutoffs, np.float32))
        last = np.append(np.diff(asked) > 0, True)
        asked, cutoffs = np.asarray(asked, np.float64)[last], cutoffs[last]
        if len(asked) == 1:
            # Where only one value can be had, a hair below it stands the other end.
            asked = np.array([np.nextafter(np.float32(asked[0]), np.float32(-1)), asked[0]])
            cutoffs = np.repeat(cutoffs, 2)
        for place in range(1, len(cutoffs)):
            below = np.nextafter(cutoffs[place - 1], np.float32(-np.inf))
            cutoffs[place] = min(cutoffs[place], below)
        return cls(asked, cutoffs, queries)

    @property
    def lowest(self) -> float:
        """The least that can be asked for; less gives the same list."""
        return float(self.asked[0])

    @property
    def highest(self) -> float:
        """The most that can be asked for; more gives the same list."""
        return float(self.asked[-1])

    def cutoff(self, value: Any) -> np.ndarray:
        """Cut-offs, float32, of values of the knob; same shape."""
        return np.interp(value, self.asked, self.cutoffs).astype(np.float32)

    def value(self, cutoff: Any) -> np.ndarray:
        """Values of the knob, float32, of cut-offs; the inverse of `cutoff`."""
        value = np.interp(np.negative(cutoff), -self.cutoffs.astype(np.float64), self.asked)
        return value.astype(np.float32)

    def to_mapping(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {
            "asked": self.asked.tolist(),
            "cutoffs": [float(cutoff) for cutoff in self.cutoffs],
            "queries": self.queries,
        }

    @classmethod
    def from_mapping(cls, name: str, mapping: Any) -> KnobMap:
        """What `to_mapping` wrote.

        Raises:
          UserError: Other keys, or points that are no map; it says so of `name`.
        """
        require_keys(name, mapping, ("asked", "cutoffs", "queries"))
        try:
            asked = np.asarray(mapping["asked"], np.float64)
            cutoffs = np.asarray(mapping["cutoffs"], np.float32)
            return cls(asked, cutoffs, int(mapping["queries"]))
        except (TypeError, ValueError) as error:
            raise UserError(f"{name} must be a monotone map. Received: {error}") from None


def require_keys(name: str, mapping: Any, keys: Sequence[str]) -> None:
    """Refuses what is not a mapping with exactly these keys."""
    if not isinstance(mapping, dict):
        raise UserError(f"{name} must be a mapping. Received: {type(mapping).__name__}.")
    if set(mapping) != set(keys):
        received = ", ".join(sorted(map(str, mapping))) or "none"
        raise UserError(f"{name} must have the keys {', '.join(keys)}. Received: {received}.")

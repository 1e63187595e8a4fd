"""What to generate: the size, the seed and the noise of a synthetic click log."""

from dataclasses import dataclass

from pebr_tf.errors import UserError

_RANGES = {
    "items": (100, 50_000_000),
    "queries": (1, 10_000_000),
    "clicks": (1, 10_000_000_000),
    "seed": (0, 2**63 - 1),
}


@dataclass(frozen=True)
class SyntheticSpec:
    """The parameters of a synthetic click log; equal values always give the same log.

    `noise` is the share of the clicks, in [0, 1), that fall on any item of the catalogue.
    """

    items: int = 20_000
    queries: int = 8_000
    clicks: int = 300_000
    seed: int = 0
    noise: float = 0.05

    def __post_init__(self) -> None:
        """Raises a UserError for a value of the wrong type or out of its range."""
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise UserError(
                    f"--{name} must be an integer from {low} to {high}. Received: {value!r}."
                )
        if type(self.noise) not in (int, float) or not 0 <= self.noise < 1:
            raise UserError(
                f"--noise must be a number from 0 to below 1. Received: {self.noise!r}."
            )

"""What to generate: size, seed and noise of a synthetic click log; a configuration that fits it."""

from dataclasses import dataclass
from pathlib import Path

from pebr_tf.config import Config, Cutoff, Data, Loss, Training
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


def config(directory: Path) -> Config:
    """A configuration for the data set in `directory`.

    The data is small and easy: a few hundred short steps are enough, and a trial of `loss.log_q`
    finds that it does not help. One click in twenty is noise, so a recall above 0.75 takes many
    more items than it is worth.
    """
    return Config(
        data=Data(
            click_log=str(directory / "clicks" / "*"),
            catalogue=str(directory / "catalogue" / "*"),
        ),
        loss=Loss(log_q=False),
        training=Training(steps=750, validation_interval=250),
        cutoff=Cutoff(default_value=0.75),
    )

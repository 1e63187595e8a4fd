"""What an experiment runs on: the scale, the seeds, and where the real logs are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pebr_tf.config import Config
from pebr_tf.data import goodbooks, synthetic
from pebr_tf.data.automatic import resolve
from pebr_tf.data.log_size import LogSize

Scale = Literal["small", "full"]
SCALES: tuple[Scale, ...] = ("small", "full")
SYNTHETIC, GOODBOOKS = "synthetic", "goodbooks"

# Small is to see every part work, in a minute; its figures say little.
_SPECS = {
    "small": {"items": 2_000, "queries": 900, "clicks": 40_000},
    "full": {"items": 20_000, "queries": 8_000, "clicks": 1_000_000},
}
_SMALL_TOWERS: dict[str, Any] = {
    "towers.dimension": 32,
    "towers.token_dimension": 32,
    "towers.hidden_layers": (64,),
    "training.batch_size": 256,
    "training.steps": 300,
    "cutoff.min_calibration_queries": 50,
}
# Training splits of the demo's log and of goodbooks-10k, in round numbers.
_SIZES = {
    SYNTHETIC: LogSize(rows=240_000, queries=8_000, items=20_000),
    GOODBOOKS: LogSize(rows=418_000, queries=8_000, items=10_000),
}
# All towers see the same number of steps, and none stops early: what differs is what is compared.
_CHANGES: dict[tuple[str, str], dict[str, Any]] = {
    (SYNTHETIC, "full"): {
        "towers.dimension": 64,
        "training.batch_size": 512,
        "training.steps": 2_000,
        "evaluation.average_k": (50, 150, 500),
    },
    (SYNTHETIC, "small"): {**_SMALL_TOWERS, "evaluation.average_k": (5, 15, 50)},
    (GOODBOOKS, "full"): {
        "towers.dimension": 64,
        "training.batch_size": 512,
        "training.steps": 2_000,
        "evaluation.average_k": (100, 400),
    },
    (GOODBOOKS, "small"): {**_SMALL_TOWERS, "evaluation.average_k": (100, 400)},
}


@dataclass(frozen=True)
class ExperimentSettings:
    """What a user asks for.

    Attributes:
      scale: "small" is for a look, "full" for figures.
      seeds: Towers that are trained of each kind, from other weights in another order.
      goodbooks: Folder of goodbooks-10k; None leaves it out.
      dbpedia: Folder of DBpedia-Entity v2; None leaves it out. Only `first-run` uses it.
      as_released: At the scale "full", take the demo's log, and train as the config that the
        project writes for a log says.
      split_seed: Decides which clicks are held out.
      held_out: Whether pairs of known queries and items are held out, or whole queries, or all
        pairs of some items.
      backbone: Folder of a pretrained encoder; None: all-MiniLM-L6-v2 of its package.
    """

    scale: Scale = "full"
    seeds: int = 3
    goodbooks: Path | None = None
    dbpedia: Path | None = None
    as_released: bool = False
    split_seed: int = 0
    held_out: Literal["pairs", "queries", "items"] = "pairs"
    backbone: Path | None = None

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets that are measured."""
        return (SYNTHETIC, GOODBOOKS) if self.goodbooks else (SYNTHETIC,)

    @property
    def spec(self) -> synthetic.SyntheticSpec:
        """The synthetic logs; every tower sees the same."""
        if self.as_released and self.scale == "full":
            return synthetic.SyntheticSpec()
        return synthetic.SyntheticSpec(seed=0, noise=0.05, **_SPECS[self.scale])

    def config(self, dataset: str) -> Config:
        """The configuration that a data set is measured with, before an experiment changes it."""
        base = {SYNTHETIC: synthetic.config, GOODBOOKS: goodbooks.config}[dataset](Path(dataset))
        if not (self.as_released and self.scale == "full"):
            fixed = {"training.early_stop_patience": None, "training.validation_interval": 250}
            base = base.replace_all(fixed | _CHANGES[dataset, self.scale])
        # What a trial chooses on both data sets, without its time.
        fixed = {"loss.log_q": False, "split.seed": self.split_seed}
        if self.held_out == "queries":
            fixed["split.by"] = "query"
        return resolve(base.replace_all(fixed), _SIZES[dataset])

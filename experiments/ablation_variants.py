"""The variants of the ablation: one change at a time from the default towers."""

from collections.abc import Mapping

from experiments.kinds import KINDS, Kind
from experiments.settings import Scale

DEFAULT = "default"
_TRAINED: Mapping[str, Kind] = {
    DEFAULT: Kind("default", KINDS["beta"].changes),
    "tau_frequency": Kind("tau sees the query's frequency", {"towers.tau_sees_frequency": True}),
    "constant_tau": Kind("one temperature for all (InfoNCE)", KINDS["info"].changes),
    "gamma_half": Kind("query prior, gamma = .5", {"loss.gamma": 0.5}),
    "gamma_one": Kind("query prior, gamma = 1", {"loss.gamma": 1.0}),
    "one_way": Kind("no item-to-query term", {"loss.symmetric_weight": 0.0}),
    "unmasked": Kind("known positives not masked", {"loss.mask_known_positives": False}),
    "one_way_unmasked": Kind("neither term nor mask", KINDS["beta_one"].changes),
    "log_q": Kind("logQ correction", {"loss.log_q": True}),
    "dimension_32": Kind("32 dimensions", {"towers.dimension": 32}),
    "dimension_128": Kind("128 dimensions", {"towers.dimension": 128}),
    "batch_256": Kind("batches of 256", {"training.batch_size": 256}),
    "batch_1024": Kind("batches of 1,024", {"training.batch_size": 1_024}),
}
# A look takes a minute or two; its towers have 32 dimensions and batches of 256 anyway.
_SMALL = (DEFAULT, "constant_tau", "one_way_unmasked", "log_q")


def variants_of(scale: Scale) -> dict[str, Kind]:
    """The towers to train by name, the default first."""
    names = _SMALL if scale == "small" else tuple(_TRAINED)
    return {name: _TRAINED[name] for name in names}

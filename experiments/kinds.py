"""The kinds of towers that the experiments compare, each a change of the default config."""

from collections.abc import Mapping
from typing import Any, NamedTuple

# The paper's losses go from query to item only, and know no other positive of a batch.
_ONE_WAY = {"loss.symmetric_weight": 0.0, "loss.mask_known_positives": False}


class Kind(NamedTuple):
    """One way to train towers.

    Attributes:
      title: What a reader sees.
      changes: Dotted keys of the config and their values, for `tower_step`.
    """

    title: str
    changes: Mapping[str, Any]


KINDS: Mapping[str, Kind] = {
    "beta": Kind("BetaNCE", {}),
    "beta_one": Kind("BetaNCE, query to item only", _ONE_WAY),
    "exp": Kind("ExpNCE", {"loss.family": "exp_nce"}),
    "exp_one": Kind("ExpNCE, query to item only", {"loss.family": "exp_nce", **_ONE_WAY}),
    "info": Kind("InfoNCE", {"loss.family": "info_nce"}),
    "info_one": Kind("InfoNCE, query to item only", {"loss.family": "info_nce", **_ONE_WAY}),
    "pointwise": Kind("Pointwise", {"loss.family": "pointwise", "loss.symmetric_weight": 0.0}),
    "mle": Kind("Maximum likelihood", {"loss.family": "mle", "loss.symmetric_weight": 0.0}),
}

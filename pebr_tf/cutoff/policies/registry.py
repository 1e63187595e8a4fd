"""Which policies there are, and how they are built."""

from collections.abc import Callable
from typing import Any

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.policies.adapter import AdapterPolicy
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.cutoff.policies.cdf import CdfPolicy, PdfCdfPolicy
from pebr_tf.cutoff.policies.level import LevelPolicy, SampleLevelPolicy
from pebr_tf.cutoff.policies.nucleus import NucleusPolicy
from pebr_tf.cutoff.policies.oracle import OraclePolicy
from pebr_tf.cutoff.policies.plain import GapPolicy, ScorePolicy, TopKPolicy
from pebr_tf.cutoff.policies.share import SharePolicy
from pebr_tf.distributions.logit import Family


def served_policy(name: str, settings: Cutoff, family: Family, level_temperature: float) -> Policy:
    """A policy that a release can serve with.

    `name` is as in `cutoff.policy` of the configuration; "level" follows `level_source`.
    """
    shared: dict[str, Any] = {"family": family, "floor": settings.floor}
    probe = {"probe_size": settings.probe_size, **shared}
    if name == "level" and settings.level_source == "sample":
        name = "level_sample"
    builders: dict[str, Callable[[], Policy]] = {
        "level": lambda: LevelPolicy(level_temperature=level_temperature, **probe),
        "level_sample": lambda: SampleLevelPolicy(level_temperature=level_temperature, **probe),
        "share": lambda: SharePolicy(**shared),
        "cdf": lambda: CdfPolicy(**shared),
        "cdf_pdf": lambda: (PdfCdfPolicy if family == "beta" else CdfPolicy)(**shared),
        "top_k": lambda: TopKPolicy(**shared),
        "score": lambda: ScorePolicy(**shared),
        "gap": lambda: GapPolicy(**shared),
        "nucleus": lambda: NucleusPolicy(**probe),
    }
    return builders[name]()


def evaluated_policies(
    level_temperature: float, adapter: AdapterPolicy | None = None
) -> tuple[Policy, ...]:
    """All policies of an evaluation: the project's own first, the oracle last.

    An adapter of None is left out.
    """
    return (
        LevelPolicy(level_temperature=level_temperature),
        SampleLevelPolicy(level_temperature=level_temperature),
        TopKPolicy(),
        ScorePolicy(),
        GapPolicy(),
        CdfPolicy(),
        NucleusPolicy(),
        *(() if adapter is None else (adapter,)),
        OraclePolicy(),
    )

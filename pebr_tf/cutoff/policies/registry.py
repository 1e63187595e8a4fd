"""Which policies there are, and how they are built."""

from dataclasses import fields
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

SERVED: dict[str, Any] = {
    policy.name: policy
    for policy in (
        LevelPolicy,
        SampleLevelPolicy,
        SharePolicy,
        CdfPolicy,
        PdfCdfPolicy,
        TopKPolicy,
        ScorePolicy,
        GapPolicy,
        NucleusPolicy,
    )
}


def served_policy(name: str, settings: Cutoff, family: Family, level_temperature: float) -> Policy:
    """A policy that a release can serve with.

    `name` is as in `cutoff.policy` of the configuration; "level" follows `level_source`.
    """
    if name == "level" and settings.level_source == "sample":
        name = "level_sample"
    if name == "cdf_pdf" and family != "beta":
        name = "cdf"
    options = {
        "family": family,
        "floor": settings.floor,
        "level_temperature": level_temperature,
        "probe_size": settings.probe_size,
    }
    policy = SERVED[name]
    return policy(**{each.name: options[each.name] for each in fields(policy)})


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

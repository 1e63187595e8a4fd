"""Policies: the rules that end lists, one file each. See `base` for what they have in common."""

from pebr_tf.cutoff.policies.adapter import AdapterPolicy, CosineAdapter, fit_adapter
from pebr_tf.cutoff.policies.base import Policy, PolicySearchResult
from pebr_tf.cutoff.policies.cdf import CdfPolicy
from pebr_tf.cutoff.policies.gap import GapPolicy
from pebr_tf.cutoff.policies.level import HeadLevelPolicy, LevelPolicy
from pebr_tf.cutoff.policies.nucleus import NucleusPolicy
from pebr_tf.cutoff.policies.oracle import OraclePolicy
from pebr_tf.cutoff.policies.registry import evaluated_policies, served_policy
from pebr_tf.cutoff.policies.score import ScorePolicy
from pebr_tf.cutoff.policies.top_k import TopKPolicy

__all__ = [
    "AdapterPolicy",
    "CdfPolicy",
    "CosineAdapter",
    "GapPolicy",
    "HeadLevelPolicy",
    "LevelPolicy",
    "NucleusPolicy",
    "OraclePolicy",
    "Policy",
    "PolicySearchResult",
    "ScorePolicy",
    "TopKPolicy",
    "evaluated_policies",
    "fit_adapter",
    "served_policy",
]

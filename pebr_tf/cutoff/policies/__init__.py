"""Policies: the rules that end lists, one file each. See `base` for what they have in common."""

from pebr_tf.cutoff.policies.adapter import AdapterPolicy, CosineAdapter, fit_adapter
from pebr_tf.cutoff.policies.base import Policy, PolicySearchResult
from pebr_tf.cutoff.policies.cdf import CdfPolicy
from pebr_tf.cutoff.policies.gap import GapPolicy
from pebr_tf.cutoff.policies.level import LevelPolicy, SampleLevelPolicy
from pebr_tf.cutoff.policies.nucleus import NucleusPolicy
from pebr_tf.cutoff.policies.oracle import OraclePolicy
from pebr_tf.cutoff.policies.registry import evaluated_policies, served_policy
from pebr_tf.cutoff.policies.score import ScorePolicy
from pebr_tf.cutoff.policies.share import SharePolicy
from pebr_tf.cutoff.policies.top_k import TopKPolicy

__all__ = [
    "AdapterPolicy",
    "CdfPolicy",
    "CosineAdapter",
    "GapPolicy",
    "LevelPolicy",
    "NucleusPolicy",
    "OraclePolicy",
    "Policy",
    "PolicySearchResult",
    "SampleLevelPolicy",
    "ScorePolicy",
    "SharePolicy",
    "TopKPolicy",
    "evaluated_policies",
    "fit_adapter",
    "served_policy",
]

"""From the knobs that a caller sets to a policy and its cut-offs."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.calibration import CALIBRATED_KNOBS, Calibration
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.cutoff.policies.plain import ScorePolicy, TopKPolicy
from pebr_tf.cutoff.policies.registry import served_policy
from pebr_tf.cutoff.policies.share import SharePolicy
from pebr_tf.metrics.strata import STRATA


@dataclass(frozen=True)
class CutoffRule:
    """What one value of a knob means.

    Attributes:
      policy: The policy that ends lists.
      cutoffs: [3] float32 cut-offs by stratum.
      is_calibrated: Whether the value is calibrated to a recall; false for top_k and score.
    """

    policy: Policy
    cutoffs: np.ndarray
    is_calibrated: bool


class ReleaseKnobs:
    """The knobs of a release; safe for concurrent callers."""

    def __init__(self, calibration: Calibration, settings: Cutoff):
        self._calibration = calibration
        policy = served_policy(
            calibration.policy, settings, calibration.family, calibration.level_temperature
        )
        floor = calibration.floor
        self.calibrated_policy = replace(policy, floor=floor)
        self._top_k, self._score = TopKPolicy(floor=floor), ScorePolicy(floor=floor)
        self._share = SharePolicy(floor=floor)
        # Most requests of a service use one of a few values.
        self.rule = functools.lru_cache(maxsize=1024)(self._rule)

    def default_rule(self) -> CutoffRule:
        return self.rule(self._calibration.default_knob, self._calibration.default_value)

    def _rule(self, knob: str, value: float) -> CutoffRule:
        strata, calibration = np.arange(len(STRATA)), self._calibration
        if knob in CALIBRATED_KNOBS:
            cutoffs = calibration.cutoff_for(knob, value, strata)
            return CutoffRule(self.calibrated_policy, cutoffs, True)
        if knob == "share":
            cutoffs = np.full(len(STRATA), calibration.share.cutoff(value), np.float32)
            return CutoffRule(self._share, cutoffs, True)
        # The score of the policy top_k is -rank, with ranks from 0.
        policy, cutoff = (self._top_k, 1 - value) if knob == "top_k" else (self._score, value)
        cutoffs = np.full(len(STRATA), cutoff, np.float32)
        return CutoffRule(policy, cutoffs, False)

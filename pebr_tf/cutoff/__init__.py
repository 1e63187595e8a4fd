"""Where each list ends: policies, the level and its temperature, and the calibrated knobs."""

from pebr_tf.cutoff.calibration import Calibration, calibrate
from pebr_tf.cutoff.candidates import (
    Candidates,
    ClickedPairs,
    QueryVectors,
    candidate_depth,
    collect_candidates,
)
from pebr_tf.cutoff.evaluation import KnobEvaluation, evaluate_policies, own_gain
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.cutoff.knobs import CutoffRule, ReleaseKnobs
from pebr_tf.cutoff.law_fit import HeldOutClicks, fit_law, fit_share_map
from pebr_tf.cutoff.level_temperature import (
    LevelTuning,
    level_temperatures_for,
    tune_level_temperature,
)
from pebr_tf.cutoff.policies import Policy, evaluated_policies, fit_adapter, served_policy

__all__ = [
    "Calibration",
    "Candidates",
    "ClickedPairs",
    "CutoffRule",
    "HeldOutClicks",
    "KnobEvaluation",
    "KnobMap",
    "LevelTuning",
    "Policy",
    "QueryVectors",
    "ReleaseKnobs",
    "calibrate",
    "candidate_depth",
    "collect_candidates",
    "evaluate_policies",
    "evaluated_policies",
    "fit_adapter",
    "fit_law",
    "fit_share_map",
    "level_temperatures_for",
    "own_gain",
    "served_policy",
    "tune_level_temperature",
]

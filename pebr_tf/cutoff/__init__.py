"""Where each list ends: policies, the level, its temperature, and the knobs."""

from pebr_tf.cutoff.adapter import CosineAdapter, fit_adapter
from pebr_tf.cutoff.calibration import Calibration, calibrate
from pebr_tf.cutoff.candidates import Candidates, Pairs, Queries, collect, depth_of
from pebr_tf.cutoff.corpus_law import CorpusLaw
from pebr_tf.cutoff.depth_law import DepthLaw, fit_depth_law
from pebr_tf.cutoff.evaluation import Knobs, default_policy, evaluate_policies
from pebr_tf.cutoff.fitted_law import fit_law
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.cutoff.level_fit import LevelFit, fit_level_head, head_levels
from pebr_tf.cutoff.level_temperature import (
    LevelTuning,
    level_temperatures_for,
    tune_level_temperature,
)
from pebr_tf.cutoff.policies import BASELINES, POLICIES, Policies
from pebr_tf.cutoff.rank_quantile import RankQuantile, fit_rank_quantile

__all__ = [
    "BASELINES",
    "POLICIES",
    "Calibration",
    "Candidates",
    "CorpusLaw",
    "CosineAdapter",
    "DepthLaw",
    "KnobMap",
    "Knobs",
    "LevelFit",
    "LevelTuning",
    "Pairs",
    "Policies",
    "Queries",
    "RankQuantile",
    "calibrate",
    "collect",
    "default_policy",
    "depth_of",
    "evaluate_policies",
    "fit_adapter",
    "fit_depth_law",
    "fit_law",
    "fit_level_head",
    "fit_rank_quantile",
    "head_levels",
    "level_temperatures_for",
    "tune_level_temperature",
]

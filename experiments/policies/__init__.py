"""Policies that only experiments compare with; no release serves them."""

from experiments.policies.corpus_law import CorpusLawPolicy
from experiments.policies.depth_law import DepthLawPolicy, fit_depth_law
from experiments.policies.fitted_law import FittedLawPolicy, fit_law
from experiments.policies.rank_quantile import RankQuantilePolicy, fit_rank_quantile

__all__ = [
    "CorpusLawPolicy",
    "DepthLawPolicy",
    "FittedLawPolicy",
    "RankQuantilePolicy",
    "fit_depth_law",
    "fit_law",
    "fit_rank_quantile",
]

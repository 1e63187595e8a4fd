"""Compares two trainings by the lists that they would serve: `loss.log_q: auto`.

Whether the logQ correction helps depends on the log. Recall of top k misleads: the correction
often raises it and makes the levels of queries less comparable, which costs more where lists end by
the level. So both ways are trained for a fifth of the steps, at most `TRIAL_STEPS`, and the lists
that each would serve are compared on validation pairs, which neither has learned from. Without a
clear gain there is no correction. `python -m experiments first-run` prints the choice for each log,
and `ablation` the effect of the correction on whole trainings.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pebr_tf.config import Training
from pebr_tf.cutoff.candidates import (
    ClickedPairs,
    QueryVectors,
    candidate_depth,
    collect_candidates,
)
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.cutoff.policies.plain import TopKPolicy
from pebr_tf.distributions.logit import Family
from pebr_tf.training.retrieval_validation import EmbeddedPairs

TRIAL_STEPS = 200
LEVEL_TEMPERATURES = (0.5, 1.0)


def trial_training(training: Training) -> Training:
    return replace(training, steps=max(min(training.steps // 5, TRIAL_STEPS), 1))


def served_recalls(pairs: EmbeddedPairs, family: Family, average_k: Sequence[int]) -> np.ndarray:
    """[Q] recall of each query, the mean over `average_k`, by the best of top k and the level.

    Each query has a pair, from which the towers have not learned; repetitions count once.
    """
    items = pairs.items
    queries = QueryVectors(pairs.vectors, pairs.tau, np.zeros(len(pairs.tau), np.int64))
    keys = np.unique(pairs.rows * len(items) + pairs.places)
    relevant = ClickedPairs(*np.divmod(keys, len(items)))
    average_k = [min(k, len(items)) for k in average_k]
    depth = candidate_depth(len(queries), len(items), average_k, len(items))
    candidates = collect_candidates(items, queries, relevant, family, LEVEL_TEMPERATURES, depth)
    policies = (TopKPolicy(), *(LevelPolicy(level_temperature=t) for t in LEVEL_TEMPERATURES))
    every = [policy.lists(candidates) for policy in policies]
    best = []
    for k in average_k:
        recalls = [lists.shares(lists.counts_at(lists.cutoff_at(k)))[1] for lists in every]
        best.append(max(recalls, key=np.mean))
    return np.mean(best, axis=0)


def correction_helps(recalls: Callable[[bool], np.ndarray]) -> bool:
    """Whether log_q raises the mean of `recalls`, [Q] with and without it, beyond its error."""
    gain = recalls(True) - recalls(False)
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))

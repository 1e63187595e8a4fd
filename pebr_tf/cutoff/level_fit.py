"""Fits the level head to levels that were measured over the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from pebr_tf.cutoff.candidates import QueryVectors, levels_of
from pebr_tf.cutoff.fitting import fit
from pebr_tf.distributions.logit import Family
from pebr_tf.models.level_head import LevelHead

# Most cosines to compute: four thousand queries for a million items.
MOST_COSINES = 4_000_000_000


@dataclass(frozen=True)
class LevelFit:
    """A fitted level head.

    Attributes:
      r_squared: Share of the variance of tau * level that it explains on held-out queries.
    """

    head: LevelHead
    r_squared: float
    queries: int


def fit_level_head(
    corpus: np.ndarray,
    queries: QueryVectors,
    family: Family,
    level_temperature: float,
    hidden: Sequence[int] = (128,),
    seed: int = 0,
) -> LevelFit:
    """Measures the levels of queries over the catalogue and fits the head to them.

    `corpus` [N, n] holds float32 unit vectors; `queries` are of the training split, at least one.
    """
    most = max(1, MOST_COSINES // len(corpus))
    if len(queries) > most:
        queries = queries.part(np.random.default_rng(seed).permutation(len(queries))[:most])
    levels = levels_of(corpus, queries, family, level_temperature)
    tf.keras.utils.set_random_seed(seed)
    head = LevelHead(family, tuple(hidden))
    head(tf.constant(queries.vectors[:1]), tf.constant(queries.tau[:1]))
    held_out = fit(head, head.squared_error, (queries.vectors, queries.tau, levels), seed)
    checked = queries.part(held_out)
    wanted = checked.tau * levels[held_out]
    received = checked.tau * head_levels(head, checked)
    variance = float(np.sum((wanted - wanted.mean()) ** 2))
    error = float(np.sum((received - wanted) ** 2))
    return LevelFit(head, 1 - error / max(variance, 1e-12), len(queries))


def head_levels(head: LevelHead, queries: QueryVectors) -> np.ndarray:
    """[Q] float32 levels that a head predicts."""
    levels: np.ndarray = head(tf.constant(queries.vectors), tf.constant(queries.tau)).numpy()
    return levels

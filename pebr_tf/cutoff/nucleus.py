"""The nucleus: the smallest prefix whose softmax mass reaches a share."""

from __future__ import annotations

import numpy as np

from pebr_tf.cutoff.candidates import ROWS, Candidates


def nucleus_scores(candidates: Candidates) -> np.ndarray:
    """[Q, M] log of the share of the softmax mass that an item and all below it have.

    Counted from the end, for 1 less the mass before an item loses its digits there.
    """
    level = candidates.levels[1.0].astype(np.float64)[:, None]
    scores = np.empty_like(candidates.logits)
    for begin in range(0, len(scores), ROWS):
        part = slice(begin, begin + ROWS)
        shares = np.exp(candidates.logits[part] - level[part]) / candidates.corpus_size
        beyond = np.maximum(1 - shares.sum(axis=1, keepdims=True), 0)
        mass = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1] + beyond
        scores[part] = np.log(np.maximum(mass, np.finfo(np.float32).tiny))
    scores[candidates.cosines == -np.inf] = -np.inf
    return scores

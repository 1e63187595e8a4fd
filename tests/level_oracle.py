"""The level by its definition."""

import math

from scipy import special


def level_of(logits, level_temperature):
    """[B] levels of logits [B, N]."""
    if level_temperature == 0:
        return logits.max(axis=1)
    if math.isinf(level_temperature):
        return logits.mean(axis=1)
    mass = special.logsumexp(logits / level_temperature, axis=1)
    return level_temperature * (mass - math.log(logits.shape[1]))

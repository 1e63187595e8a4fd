"""How far chance alone moves a mean over queries: the bootstrap.

The test queries are a sample of all queries. Another sample would give other means. How much they
vary is estimated by drawing from the sample itself, with replacement, 1,000 times. The weights of
all draws come from one seed, so that the same queries give the same decision.
"""

from dataclasses import dataclass

import numpy as np

RESAMPLES = 1_000
# One-sided: chance alone exceeds a noise of this confidence in one of twenty evaluations.
CONFIDENCE = 0.95
# More queries are drawn in so many random groups of equal size, which vary as their means do.
MAX_DRAWN = 2_000


def deviations(values: np.ndarray) -> np.ndarray:
    """[RESAMPLES, V] differences of the means of drawn queries from the means of `values` [Q, V].

    A mean of Q values varies by the deviation of its queries, which Q - 1 of them measure. One
    query says nothing about others: its deviations are 1 and -1, the most that shares can differ.
    """
    if len(values) < 2:
        signs = np.where(np.arange(RESAMPLES) % 2, 1.0, -1.0)
        return np.repeat(signs[:, None], values.shape[1], axis=1)
    generator = np.random.default_rng(0)
    if len(values) > MAX_DRAWN:
        groups = np.array_split(generator.permutation(len(values)), MAX_DRAWN)
        values = np.stack([values[group].mean(axis=0) for group in groups])
    drawn = len(values)
    centered = (values - values.mean(axis=0)) / np.sqrt(drawn * (drawn - 1))
    chosen = generator.integers(drawn, size=(RESAMPLES, drawn))
    cells = (chosen + drawn * np.arange(RESAMPLES)[:, None]).ravel()
    weights = np.bincount(cells, minlength=RESAMPLES * drawn).reshape(RESAMPLES, drawn)
    return weights.astype(np.float64) @ centered


def noise(values: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """The most by which the mean of `values` [Q] falls below its expectation by chance."""
    return float(np.quantile(-deviations(values[:, None]), confidence))


def error_noise(values: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """The mean absolute error that chance alone gives V means of `values` [Q, V].

    An absolute error is positive even if every expectation is met, so it is not compared with its
    own bootstrap but with that of no error. Let the means have the true errors e and the noise n:
    mean |e + n| <= mean |e| + mean |n|. If mean |e| is within a bound, then the measured error
    exceeds that bound plus the quantile of mean |n| at most in a share 1 - `confidence` of cases.
    """
    return float(np.quantile(np.abs(deviations(values)).mean(axis=1), confidence))


def interval(values: np.ndarray) -> tuple[float, float]:
    """The 95% interval of the mean of `values` [Q], which are shares from 0 to 1."""
    low, high = np.quantile(deviations(values[:, None]), [0.025, 0.975]) + values.mean()
    return float(max(low, 0.0)), float(min(high, 1.0))


@dataclass(frozen=True)
class Evidence:
    """Figures of each test query, from which the gates find out how sure they are.

    Attributes:
      strata: [Q] indices into STRATA.
      precision, recall: [Q, 2] of the served lists and of top k, at the middle average.
      gain: [Q] recall of the query's own list less that of another query's list of that length.
      recalls: [Q, V] recall at each requested recall.
      empty: [Q] whether the served list has no item.
      index_recall: [I, 2] macro and micro recall of the index; see `pebr_tf.retrieval.tune`.
      baseline_recall: [Q] of the last blessed model at the middle average, or None.
    """

    strata: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    gain: np.ndarray
    recalls: np.ndarray
    empty: np.ndarray
    index_recall: np.ndarray
    baseline_recall: np.ndarray | None = None

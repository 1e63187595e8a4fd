"""Whether one way to end lists beats another at an equal average: a paired bootstrap over queries.

Both ways are measured on the same queries, and queries are what a test set is a sample of. So
queries are drawn anew, with replacement, and each draw gives a difference of macro averages.

*The average is equal in every draw.* In a draw without the broadest query a policy retrieves less,
and would get a lower cut-off. To keep the cut-offs would compare two policies at different
averages, and to fit them anew for every draw is slow. Instead each query's figure is corrected for
what its list takes from the budget: with m(k) the macro average of the policy at average k, and k_q
the items of query q,

    column_q = figure_q - m'(k) * (k_q - k)

whose mean over a draw is, to first order, the macro average with the cut-off that gives the draw
an average of k: m' times the items by which the draw misses k is taken off (the delta method).

*Several seeds.* Towers of S seeds answer the same queries. The differences of a query are averaged
over the seeds first, and queries are drawn then: the p-value speaks about other queries, for the
mean of these trainings. Three seeds are too few to be drawn from; their spread belongs beside the
p-value, as a standard deviation (`Comparison.by_seed`).
"""

from dataclasses import dataclass

import numpy as np

from pebr_tf.metrics.ranked import RankedLists

RESAMPLES = 2_000
# Around the average, for its slope; wide enough that single queries do not show in it.
_STEP = 0.1
# Draws of queries held at once.
_MOST_DRAWN = 4_000_000


@dataclass(frozen=True)
class Columns:
    """Figures of each query at one average, corrected for its share of the budget.

    Attributes:
      precision: [Q] float64; their mean is the macro precision.
      recall: [Q] float64; their mean is the macro recall.
    """

    precision: np.ndarray
    recall: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """How much larger the mean of one column is than that of another.

    Attributes:
      difference: Of the means over queries and seeds.
      low: Lower end of the 95% confidence interval.
      high: Its upper end.
      p_value: One-sided, of "not larger": the share of draws whose difference is not above 0.
      by_seed: [S] the difference of each seed.
    """

    difference: float
    low: float
    high: float
    p_value: float
    by_seed: tuple[float, ...]


def columns_at(lists: RankedLists, average: float) -> Columns:
    """The columns of a policy at an average number of items.

    Args:
      lists: Candidates scored by the policy.
      average: Items a query, above 0.
    """
    counts = lists.counts_at(lists.cutoff_at(average))
    hits = lists.hits(counts)
    lower, upper = (
        lists.figures(lists.counts_at(lists.cutoff_at(average * factor)))
        for factor in (1 - _STEP, 1 + _STEP)
    )
    # Where ties or the end of the candidates leave nothing to move, the figures do not move either.
    run = upper.average - lower.average
    beyond = (counts - counts.mean()) / run if run > 0 else np.zeros(len(counts))
    return Columns(
        precision=hits / np.maximum(counts, 1) - (upper.precision - lower.precision) * beyond,
        recall=hits / lists.totals - (upper.recall - lower.recall) * beyond,
    )


def compare(
    ours: np.ndarray, theirs: np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Whether the mean of one column is above that of another.

    Args:
      ours: [Q] or [S, Q] a column of `columns_at`, of S seeds.
      theirs: The same of the other policy, on the same queries.
      resamples: Draws of Q queries.
      seed: Of the draws.

    Raises:
      ValueError: The shapes differ, or there is no query.
    """
    if ours.shape != theirs.shape or ours.ndim not in (1, 2) or not ours.size:
        raise ValueError(
            "ours and theirs must have the same shape, [Q] or [S, Q]. Received: "
            f"{ours.shape} and {theirs.shape}."
        )
    differences = np.atleast_2d(ours - theirs)
    by_query = differences.mean(axis=0)
    drawn = drawn_means(by_query, resamples, seed)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Comparison(
        difference=float(by_query.mean()),
        low=float(low),
        high=float(high),
        # With the sample itself as one more draw, no p-value is 0.
        p_value=float((1 + np.sum(drawn <= 0)) / (1 + resamples)),
        by_seed=tuple(differences.mean(axis=1).tolist()),
    )


def drawn_means(values: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """[R] means of values [Q], over R draws of Q queries with replacement."""
    count = len(values)
    generator = np.random.default_rng(seed)
    step = max(1, _MOST_DRAWN // count)
    means = np.empty(resamples)
    for begin in range(0, resamples, step):
        size = min(step, resamples - begin)
        places = generator.integers(count, size=(size, count), dtype=np.int32)
        means[begin : begin + size] = values[places].mean(axis=1)
    return means

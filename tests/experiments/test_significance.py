"""The paired bootstrap against SciPy, and its correction against cut-offs fitted in every draw."""

import numpy as np
import pytest
from scipy import stats

from experiments.significance import columns_at, compare, drawn_means
from pebr_tf.metrics.ranked import RankedLists, Ranks

QUERIES, ITEMS, AVERAGE = 600, 60, 8


class TwoPolicies:
    """Queries of very different breadth, and two ways to end their lists.

    Both scores fall along the same ranking. One knows the breadth of a query up to an error, the
    other does not.
    """

    def __init__(self):
        rng = np.random.default_rng(0)
        breadth = rng.lognormal(1.6, 1.0, QUERIES)
        ranks = np.arange(ITEMS)
        self.relevant = rng.random((QUERIES, ITEMS)) < 0.7 * np.exp(-ranks / breadth[:, None])
        self.relevant[:, 0] = True
        self.totals = self.relevant.sum(axis=1) + rng.integers(0, 3, QUERIES)
        said = breadth * np.exp(0.5 * rng.normal(size=QUERIES))
        falling = -np.sort(rng.random((QUERIES, ITEMS)), axis=1)
        self.informed = (falling * ITEMS / said[:, None]).astype(np.float32)
        self.plain = (falling + 0.1 * rng.normal(size=(QUERIES, 1))).astype(np.float32)

    def lists(self, scores: np.ndarray) -> RankedLists:
        return RankedLists(scores, Ranks(*np.nonzero(self.relevant)), self.totals)

    def figures(self, scores: np.ndarray, drawn: np.ndarray) -> tuple[float, float]:
        """Macro precision and recall of drawn queries, with the cut-off of the draw."""
        scores, relevant = scores[drawn], self.relevant[drawn]
        allowed = AVERAGE * len(drawn)
        cutoff = -np.partition(-scores.ravel(), allowed - 1)[allowed - 1]
        kept = scores >= cutoff
        # Where a query was drawn twice, all that tie with the last item would come together.
        if kept.sum() > allowed:
            kept = scores > cutoff
        hits = (kept & relevant).sum(axis=1)
        precision = hits / np.maximum(kept.sum(axis=1), 1)
        return precision.mean(), (hits / self.totals[drawn]).mean()


@pytest.fixture(scope="module")
def world():
    return TwoPolicies()


@pytest.fixture(scope="module")
def refitted(world):
    """[R, 2, 2] figures of 1,000 draws: policy, then precision and recall."""
    rng = np.random.default_rng(1)
    draws = rng.integers(QUERIES, size=(1_000, QUERIES))
    return np.array(
        [[world.figures(scores, drawn) for scores in (world.informed, world.plain)]
         for drawn in draws]
    )  # fmt: skip


def test_the_mean_of_a_column_is_the_macro_average(world):
    for scores in (world.informed, world.plain):
        expected = world.figures(scores, np.arange(QUERIES))
        columns = columns_at(world.lists(scores), AVERAGE)
        assert (columns.precision.mean(), columns.recall.mean()) == pytest.approx(expected)
        assert columns.recall.shape == columns.precision.shape == (QUERIES,)


@pytest.mark.parametrize(("place", "figure"), [(0, "precision"), (1, "recall")])
def test_draws_spread_as_if_each_had_its_own_cut_off(place, figure, world, refitted):
    """Of each policy and of their difference, whose spread decides the p-value."""
    ours, theirs = (
        getattr(columns_at(world.lists(scores), AVERAGE), figure)
        for scores in (world.informed, world.plain)
    )
    pairs = [
        (ours, refitted[:, 0, place]),
        (theirs, refitted[:, 1, place]),
        (ours - theirs, refitted[:, 0, place] - refitted[:, 1, place]),
    ]
    for column, truth in pairs:
        assert column.std() / np.sqrt(QUERIES) == pytest.approx(truth.std(), rel=0.07)
        drawn = drawn_means(column, 4_000)
        ours_at, theirs_at = (np.percentile(each, [2.5, 97.5]) for each in (drawn, truth))
        np.testing.assert_allclose(ours_at, theirs_at, atol=0.2 * truth.std())


def test_an_interval_is_scipy_s(world):
    ours, theirs = (
        columns_at(world.lists(scores), AVERAGE).recall for scores in (world.informed, world.plain)
    )
    found = compare(ours, theirs, 8_000)
    deviation = (ours - theirs).std(ddof=1) / np.sqrt(QUERIES)
    assert found.difference == pytest.approx(ours.mean() - theirs.mean())
    assert found.by_seed == pytest.approx([found.difference])
    normal = stats.norm.interval(0.95, found.difference, deviation)
    np.testing.assert_allclose((found.low, found.high), normal, atol=0.12 * deviation)
    theirs_by_scipy = stats.bootstrap(
        (ours, theirs),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=8_000,
        method="percentile",
        random_state=np.random.default_rng(3),
    ).confidence_interval
    np.testing.assert_allclose((found.low, found.high), theirs_by_scipy, atol=0.1 * deviation)


@pytest.mark.parametrize("shift", [-0.5, 0.0, 2.0])
def test_a_p_value_is_that_of_a_one_sided_test(shift):
    rng = np.random.default_rng(4)
    theirs = rng.normal(size=400)
    ours = theirs + rng.gamma(2.0, 1.0, 400) - 2
    deviation = (ours - theirs).std(ddof=1) / 20
    ours += shift * deviation - (ours - theirs).mean()
    expected = stats.ttest_rel(ours, theirs, alternative="greater").pvalue
    assert compare(ours, theirs, 8_000).p_value == pytest.approx(expected, abs=0.025)


def test_seeds_are_averaged_before_queries_are_drawn():
    rng = np.random.default_rng(5)
    ours, theirs = rng.normal(size=(2, 3, 50))
    found = compare(ours, theirs)
    assert found.by_seed == pytest.approx((ours - theirs).mean(axis=1).tolist())
    alone = compare(ours.mean(axis=0), theirs.mean(axis=0))
    assert found.p_value == pytest.approx(alone.p_value)
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high))
    # The same queries three times are no more queries.
    same = compare(np.tile(ours[:1], (3, 1)), np.tile(theirs[:1], (3, 1)))
    once = compare(ours[0], theirs[0])
    assert (same.low, same.p_value) == pytest.approx((once.low, once.p_value))


@pytest.mark.parametrize(("difference", "p_value"), [(0.25, 1 / 2_001), (0.0, 1.0), (-0.25, 1.0)])
def test_p_values_at_the_ends(difference, p_value):
    found = compare(np.full(7, 1 + difference), np.ones(7))
    assert (found.p_value, found.low, found.high) == (p_value, difference, difference)


def test_what_does_not_fit_is_rejected(world):
    message = r"^ours and theirs must have the same shape, \[Q\] or \[S, Q\]\. Received: "
    for ours, theirs in (((3,), (4,)), ((2, 3), (3,)), ((0,), (0,)), ((), ()), ((1, 1, 1),) * 2):
        with pytest.raises(ValueError, match=message):
            compare(np.zeros(ours), np.zeros(theirs))
    with pytest.raises(ValueError, match=r"^average must be above 0\. Received: 0\.$"):
        columns_at(world.lists(world.plain), 0)


def test_where_nothing_can_move_the_figures_are_as_they_are():
    """All items tie, and then: the lists end with the candidates."""
    ranks = Ranks(np.array([0, 0, 1]), np.array([0, 3, 1]))
    totals = np.array([2, 4])
    tied = RankedLists(np.zeros((2, 4), np.float32), ranks, totals)
    columns = columns_at(tied, 9)
    np.testing.assert_allclose(columns.precision, [2 / 4, 1 / 4])
    np.testing.assert_allclose(columns.recall, [2 / 2, 1 / 4])
    nothing = columns_at(tied, 3)
    np.testing.assert_array_equal(nothing.recall, [0, 0])
    falling = RankedLists(-np.tile(np.arange(4, dtype=np.float32), (2, 1)), ranks, totals)
    np.testing.assert_allclose(columns_at(falling, 40).recall, [2 / 2, 1 / 4])

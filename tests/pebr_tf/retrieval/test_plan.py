"""Plans against a dense model in float64, one query and one leaf after the other.

Similarities are float32 in a plan. An error of 1e-7 in a cosine is 1e-5 deviations of a narrow
leaf, and that many times z in the relative size of a tail z deviations out: hence TOLERANCE.
"""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from cutoff_worlds import unit
from hypothesis import given, settings
from scipy import stats

from pebr_tf.retrieval import plan as module
from pebr_tf.retrieval.plan import IndexTuning, Leaves, Planner

TOLERANCE = 2e-3


def random_leaves(generator, count, dimension):
    """Leaves of very different sizes, some of them empty, and of different spreads."""
    lengths = generator.uniform(0.3, 1, (count, 1))
    return Leaves(
        (unit(generator.normal(size=(count, dimension))) * lengths).astype(np.float32),
        np.floor(10 ** generator.uniform(-0.5, 4, count)).astype(np.float32),
        generator.uniform(0.1, 0.9, count).astype(np.float32),
        random_scatter(generator, dimension),
    )


def round_leaves(centroids, sizes, spread):
    """Leaves of one spread, in all directions."""
    count, dimension = centroids.shape
    return Leaves(
        centroids.astype(np.float32),
        np.broadcast_to(sizes, count).astype(np.float32),
        np.full(count, spread, np.float32),
        np.eye(dimension, dtype=np.float32),
    )


def leaves_alike(generator, count, size, spread):
    """Leaves in 16 dimensions that differ only in their directions."""
    return round_leaves(0.8 * unit(generator.normal(size=(count, 16))), size, spread)


def random_scatter(generator, dimension):
    """A covariance of trace `dimension`, with directions four times as wide as others."""
    axes = np.linalg.qr(generator.normal(size=(dimension, dimension)))[0]
    variances = generator.uniform(0.4, 1.6, dimension)
    return (axes * (variances * dimension / variances.sum()) @ axes.T).astype(np.float32)


def deviations_below(query, threshold, leaves, tuning):
    """[L] deviations that each leaf's centroid lies below the threshold."""
    width = math.sqrt(query.astype(np.float64) @ leaves.scatter @ query)
    deviations = leaves.spreads.astype(np.float64) * width / math.sqrt(tuning.concentration)
    return (threshold - leaves.centroids.astype(np.float64) @ query) / deviations


def expected_items(query, threshold, leaves, tuning):
    """Pairs (similarity, items expected at or above `threshold`), nearest leaf first."""
    similarities = leaves.centroids.astype(np.float64) @ query
    items = leaves.sizes * stats.norm.sf(deviations_below(query, threshold, leaves, tuning))
    return sorted(zip(similarities.tolist(), items.tolist(), strict=True), reverse=True)


def leaves_that_hold(pairs, share):
    """How many of the nearest leaves hold this share of the items."""
    wanted, held = share * sum(items for _, items in pairs), 0.0
    for count, (_, items) in enumerate(pairs, 1):
        held += items
        if held >= wanted:
            return count
    return len(pairs)


def assert_covers(count, pairs, cover, least):
    """`count` is the least number of leaves that hold the share, up to rounding."""
    fewest = leaves_that_hold(pairs, cover - TOLERANCE)
    most = leaves_that_hold(pairs, min(cover + TOLERANCE, 1 - 1e-9))
    least = min(least, len(pairs))
    assert max(fewest, least) <= count <= max(most, least)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 60),
    dimension=st.integers(2, 64),
    relative=st.floats(0.15, 1.2),
    cover=st.floats(0.7, 0.995),
    min_leaves=st.integers(1, 80),
    thresholds=st.lists(st.floats(-0.999, 1.2), min_size=1, max_size=6),
)
def test_plans_of_the_dense_model(seed, count, dimension, relative, cover, min_leaves, thresholds):
    generator = np.random.default_rng(seed)
    leaves = random_leaves(generator, count, dimension)
    tuning = IndexTuning(relative * dimension, cover, min_leaves)
    queries = unit(generator.normal(size=(len(thresholds), dimension)))
    thresholds = np.array(thresholds, np.float32)
    plan = Planner(leaves, tuning).plan(queries, thresholds, limit=10**9)

    np.testing.assert_array_equal(plan.leaves, plan.enough)
    for row, (query, threshold) in enumerate(zip(queries, thresholds.tolist(), strict=True)):
        pairs = expected_items(query, threshold, leaves, tuning)
        total = sum(items for _, items in pairs)
        below = deviations_below(query, threshold, leaves, tuning)
        # Leaves out of reach may be left out of the sum, with what little they hold.
        reach = max(below.min() + module.REACH_OF_NEAREST, module.REACH)
        beyond = (leaves.sizes * stats.norm.sf(below))[below > reach - 1e-3].sum()
        slack = TOLERANCE * total + np.finfo(np.float32).tiny
        assert total - beyond - slack <= plan.expected[row] <= total + slack
        if beyond < TOLERANCE * total and below.min() < 5:
            assert_covers(plan.leaves[row], pairs, cover, min_leaves)
        assert min(min_leaves, count) <= plan.leaves[row] <= count


def leaves_on_a_line(similarities, sizes, spread):
    """Leaves that the query [1, 0, 0, 0] sees at these similarities."""
    return round_leaves(np.outer(similarities, [1, 0, 0, 0]), sizes, spread)


QUERY = np.array([[1, 0, 0, 0]], np.float32)


def test_every_query_searches_the_least_number_of_leaves():
    leaves = leaves_on_a_line([0.9, 0.2, 0.1, 0.0], [100, 50, 30, 20], 0.01)
    thresholds = np.array([0.85, 1.0, 2.0, 40, np.inf], np.float32)
    for least in (1, 3, 4, 10**9):
        planner = Planner(leaves, IndexTuning(4.0, min_leaves=least))
        plan = planner.plan(np.repeat(QUERY, 5, axis=0), thresholds, limit=10**9)
        assert plan.leaves[:4].tolist() == [min(least, 4)] * 4
        assert plan.expected[2:].tolist() == [0, 0, 0]


def test_thresholds_that_every_item_passes_search_everything():
    generator = np.random.default_rng(0)
    leaves = random_leaves(generator, 50, 8)
    queries = unit(generator.normal(size=(3, 8)))
    thresholds = np.array([-np.inf, 0.5, -np.inf], np.float32)
    planner = Planner(leaves, IndexTuning(8.0, min_leaves=1))
    plan = planner.plan(queries, thresholds, limit=10**9)
    alone = planner.plan(queries[1:2], thresholds[1:2], limit=10**9)
    assert plan.leaves.tolist() == [50, alone.leaves[0], 50]
    assert plan.expected[[0, 2]].tolist() == [leaves.sizes.sum()] * 2
    assert plan.expected[1] == pytest.approx(alone.expected[0], rel=1e-5)
    assert alone.leaves[0] < 50


def test_rows_that_expect_very_little_beside_rows_that_expect_very_much():
    """Expected counts from 1e6 down to 1e-12 and below, in one batch and in turn."""
    generator = np.random.default_rng(0)
    leaves = leaves_alike(generator, 200, 20_000, 0.5)
    tuning = IndexTuning(16.0, cover=0.9, min_leaves=1)
    queries = unit(generator.normal(size=(60, 16)))
    thresholds = np.resize([-0.3, 1.5, 0.2, 1.8, 0.0, 2.5], 60).astype(np.float32)
    plan = Planner(leaves, tuning).plan(queries, thresholds, limit=10**9)
    assert plan.expected.max() > 1e6
    assert plan.expected.min() < 1e-12
    for row, (query, threshold) in enumerate(zip(queries, thresholds.tolist(), strict=True)):
        pairs = expected_items(query, threshold, leaves, tuning)
        total = sum(items for _, items in pairs)
        assert plan.expected[row] == pytest.approx(total, rel=0.02)
        fewest, most = (leaves_that_hold(pairs, share) for share in (0.88, 0.92))
        assert fewest <= plan.leaves[row] <= most


def assert_ends_at_the_best(planner, query, threshold, limit, tolerance):
    """The leaves hold the share of what lies above the cosine that `limit` items exceed."""
    leaves, tuning = planner.leaves, planner.tuning
    thresholds = np.array([threshold], np.float32)
    plan = planner.plan(query[None], thresholds, limit)
    unlimited = planner.plan(query[None], thresholds, limit=10**9)
    np.testing.assert_array_equal(plan.enough, unlimited.leaves)
    np.testing.assert_array_equal(plan.expected, unlimited.expected)
    if plan.expected[0] <= limit:
        assert plan.leaves[0] == plan.enough[0]
        return
    low, high = -1.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        found = sum(items for _, items in expected_items(query, middle, leaves, tuning))
        low, high = (middle, high) if found >= limit else (low, middle)
    # The plan knows the cosine to .0005.
    counts = [
        leaves_that_hold(
            expected_items(query, low + shift, leaves, tuning),
            min(tuning.top_k_cover + change, 1 - 1e-9),
        )
        for shift in (-1e-3, 1e-3)
        for change in (-tolerance, tolerance)
    ]
    enough = unlimited.leaves[0]
    assert min(*counts, enough) <= plan.leaves[0] <= min(max(counts), enough)


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, module.NEARBY_LEAVES),
    limit=st.sampled_from([1, 2, 10, 100, 1_000]),
    cover=st.floats(0.8, 0.99),
    threshold=st.sampled_from([-np.inf, -0.5, 0.0, 0.3]),
)
def test_a_limit_ends_a_plan_where_the_best_are_expected(seed, count, limit, cover, threshold):
    generator = np.random.default_rng(seed)
    leaves = random_leaves(generator, count, 16)
    query = unit(generator.normal(size=(1, 16)))[0]
    planner = Planner(leaves, IndexTuning(16.0, min_leaves=1, top_k_cover=cover))
    assert_ends_at_the_best(planner, query, threshold, limit, tolerance=5e-3)


def test_a_limit_ends_a_plan_of_many_leaves():
    """The plan considers only the nearest leaves; of leaves alike, that makes no difference."""
    generator = np.random.default_rng(0)
    leaves = leaves_alike(generator, 500, 100, 0.6)
    planner = Planner(leaves, IndexTuning(16.0, min_leaves=1, top_k_cover=0.95))
    for limit in (1, 20, 1_000, 20_000, 49_000):
        for query in unit(generator.normal(size=(2, 16))):
            assert_ends_at_the_best(planner, query, -np.inf, limit, tolerance=0.01)


def test_a_limit_beyond_what_the_near_leaves_hold():
    """Two small leaves near the query, then nothing for a long way, then ten large ones."""
    similarities = [0.9, 0.88, *(-0.3 - 0.02 * step for step in range(10))]
    for spread in (0.02, 0.2, 0.5):
        leaves = leaves_on_a_line(similarities, [10, 10] + [1_000] * 10, spread)
        planner = Planner(leaves, IndexTuning(4.0, min_leaves=1, top_k_cover=0.95))
        for limit in (5, 15, 30, 1_000, 5_000):
            assert_ends_at_the_best(planner, QUERY[0], -np.inf, limit, tolerance=0.01)


def test_the_margin_shrinks_where_many_items_are_expected():
    planner = Planner(random_leaves(np.random.default_rng(0), 5, 4), IndexTuning(4.0, margin=0.04))
    margins = planner.margins(np.array([0, 20, 200, 2_000, 1e7], np.float32))
    assert margins.dtype == np.float32
    assert margins[0] == margins[1] == np.float32(0.04)
    assert (np.diff(margins[1:]) < 0).all()
    assert margins[-1] >= np.float32(0.02)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.6, 0.7])
def test_the_expected_count_is_near_the_true_one_for_gaussian_leaves(threshold):
    """40 leaves of isotropic noise: the model is right, and counts stray by chance alone."""
    generator = np.random.default_rng(0)
    count, dimension, size, spread = 40, 24, 500, 0.6
    centroids = unit(generator.normal(size=(count, dimension))) * np.float32(0.8)
    noise = generator.normal(size=(count, size, dimension)) * spread / dimension**0.5
    items = (centroids[:, None] + noise).reshape(-1, dimension)
    leaves = Leaves.of(items, np.repeat(np.arange(count), size), centroids)
    nearest = generator.integers(count, size=30)
    queries = unit(centroids[nearest] + 0.1 * generator.normal(size=(30, dimension)))
    plan = Planner(leaves, IndexTuning(float(dimension))).plan(
        queries, np.full(30, threshold, np.float32), limit=10**9
    )
    true = (queries @ items.T >= threshold).sum(axis=1)
    assert true.min() >= 10
    # 4.5 deviations of a sum of many small chances, Poisson at the most.
    assert (np.abs(plan.expected - true) <= 4.5 * np.sqrt(plan.expected) + 1).all()
    assert plan.expected.sum() == pytest.approx(true.sum(), rel=0.03)


@given(st.integers(0, 10**6), st.integers(1, 60), st.floats(-0.9, 1), st.floats(0.5, 0.999))
@settings(max_examples=30, deadline=None)
def test_a_query_alone_is_planned_as_in_a_batch(seed, count, threshold, cover):
    generator = np.random.default_rng(seed)
    leaves = random_leaves(generator, count, 8)
    queries = unit(generator.normal(size=(2, 8)))
    threshold = np.float32(threshold)
    planner = Planner(leaves, IndexTuning(8.0, cover=cover, min_leaves=2))
    together = planner.plan(queries, np.full(2, threshold), limit=10**9)
    rows = zip(queries, together.leaves, together.expected, strict=True)
    for query, leaf_count, expected in rows:
        alone, alone_expected = planner.plan_one(query, threshold)
        assert alone_expected == pytest.approx(expected, rel=TOLERANCE, abs=1e-30)
        pairs = expected_items(query, threshold, leaves, planner.tuning)
        fewest, most = (
            max(leaves_that_hold(pairs, share), min(2, count))
            for share in (cover - 1e-3, min(cover + 1e-3, 1))
        )
        assert fewest <= alone <= most or alone == leaf_count
        assert planner.margin(alone_expected) == planner.margins(np.float32([alone_expected]))[0]


def test_leaves_of_items_have_their_sizes_spreads_and_scatter():
    generator = np.random.default_rng(0)
    tokens = np.array([0] * 50 + [2] * 150)
    centroids = generator.normal(size=(3, 4)).astype(np.float32)
    items = (centroids[tokens] + generator.normal(size=(200, 4)) * [3, 1, 1, 0.5]).astype("f4")
    leaves = Leaves.of(items, tokens, centroids)
    assert leaves.sizes.tolist() == [50, 0, 150]
    for leaf in (0, 2):
        distances = np.linalg.norm(items[tokens == leaf] - centroids[leaf], axis=1)
        assert leaves.spreads[leaf] == pytest.approx(math.sqrt((distances**2).mean()), rel=1e-5)
    apart = items - centroids[tokens]
    covariance = sum(np.outer(row, row) for row in apart.astype(np.float64))
    np.testing.assert_allclose(leaves.scatter, covariance * 4 / np.trace(covariance), atol=1e-5)
    axis = np.eye(4, dtype=np.float32)
    wide, narrow = leaves.widths(axis[[0, 3]])[:, 0]
    assert wide == pytest.approx(min(math.sqrt(leaves.scatter[0, 0]), 2))
    assert narrow == 0.5


def test_leaves_in_which_every_item_is_the_same_have_a_width():
    leaves = Leaves.of(np.ones((6, 2), "f4"), np.repeat([0, 1], 3), np.ones((2, 2), "f4"))
    assert np.isfinite(leaves.widths(QUERY[:, :2])).all()

"""What the recall knob keeps, query by query; coverage against loops and known chances."""

import numpy as np
import pytest
from random_towers import clicked_in, random_towers

from experiments.calibration_measured import REQUESTED, WAYS, measure
from experiments.coverage import coverage
from experiments.cutoffs_measured import counts_of
from experiments.released import released
from pebr_tf.cutoff.calibration import recall_map
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.metrics.comparison import groups_of
from pebr_tf.metrics.ranked import RankedLists, Ranks
from pebr_tf.metrics.strata import STRATA


def random_lists(seed, queries=31, candidates=40, ties=False):
    """Falling scores less an offset; up to six relevant items per query, some no candidates."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(queries, candidates)).astype(np.float32)
    scores = -np.sort(-(np.round(scores) if ties else scores), axis=1)
    # Some rows have fewer candidates.
    scores[::5, candidates // 2 :] = -np.inf
    rows, ranks = [], []
    for row in range(queries):
        chosen = generator.choice(candidates + 2, generator.integers(1, 7), replace=False)
        rows += [row] * len(chosen)
        ranks += np.minimum(chosen, candidates).tolist()
    offsets = generator.integers(0, 2, queries).astype(np.float32)
    return RankedLists(scores, Ranks(np.array(rows), np.array(ranks)), np.bincount(rows), offsets)


def single_hits(queries, seed=0):
    """One relevant item a query, whose score is all that matters."""
    scores = np.random.default_rng(seed).normal(size=(queries, 1)).astype(np.float32)
    return RankedLists(
        scores, Ranks(np.arange(queries), np.zeros(queries, int)), np.ones(queries, int)
    )


def recall_by_hand(lists, query, cutoff, floor, limit):
    """Recall of one query, item by item."""
    scores = lists.scores[query] - (0 if lists.offsets is None else lists.offsets[query])
    there = int((lists.scores[query] > -np.inf).sum())
    long = min(max(sum(score >= cutoff for score in scores[:there]), floor), limit, there)
    ranks = lists.relevant.ranks[lists.relevant.rows == query]
    return sum(rank < long for rank in ranks) / lists.totals[query]


@pytest.mark.parametrize(
    ("ties", "floor", "limit"), [(False, 0, 100), (True, 1, 25), (True, 3, 20)]
)
def test_coverage_is_that_of_loops(ties, floor, limit):
    lists = random_lists(7, ties=ties)
    requested = (0.2, 0.3, 0.5, 0.6)
    found = coverage(lists, requested, 6, floor, limit, seed=3)
    generator = np.random.default_rng(3)
    for pair in range(3):
        first = np.isin(np.arange(31), generator.permutation(31)[:15])
        for place, half in enumerate((first, ~first)):
            fitted = recall_map(lists.part(half), floor, limit)
            for share, recall in zip(requested, found.recall[2 * pair + place], strict=True):
                cutoff = fitted.cutoff(share)
                others = np.flatnonzero(~half)
                expected = [recall_by_hand(lists, row, cutoff, floor, limit) for row in others]
                assert recall == pytest.approx(np.mean(expected), abs=1e-12)
    assert found.queries == 31
    np.testing.assert_allclose(found.mean, found.recall.mean(axis=0))
    pairs = [(found.recall[2 * i] + found.recall[2 * i + 1]) / 2 for i in range(3)]
    np.testing.assert_allclose(found.standard_error, np.std(pairs, axis=0, ddof=1) / 3**0.5)
    errors = np.abs(found.recall - requested)
    assert found.chance == pytest.approx(np.mean(errors[:, found.reached]))


def test_coverage_is_the_known_chance():
    """Halves of ten with one hit each: .8 takes 9 of 11 places, .5 takes 6; .95 takes 11 of 11."""
    found = coverage(single_hits(20), (0.5, 0.8, 0.95), 1_000, 0, 10)
    np.testing.assert_allclose(found.mean[:2], [6 / 11, 9 / 11], atol=0.012)
    assert found.reached.tolist() == [True, True, False]
    assert found.holds[:2].all()
    assert (found.standard_error[:2] < 0.004).all()
    assert not found.holds[2]


def shifted(lists, floor, limit):
    """Promises .1 more than it keeps."""
    found = recall_map(lists, floor, limit)
    return KnobMap(found.knob_values + 0.1, found.cutoffs, found.queries)


def test_a_map_that_promises_too_much_is_found_out():
    found = coverage(single_hits(20), (0.8,), 1_000, 0, 10, fit=shifted)
    assert found.mean[0] == pytest.approx(8 / 11, abs=0.012)
    assert not found.holds[0]


@pytest.fixture(scope="module")
def towers():
    return random_towers()


@pytest.fixture(scope="module")
def measured(towers):
    return measure(towers, 4)


@pytest.fixture(scope="module")
def release(towers):
    return released(towers)


def nucleus_by_hand(towers, query, recall):
    """The fewest items whose softmax mass is the share."""
    logits = np.log((1 + (towers.items @ towers.queries.vectors[query]).astype(np.float64)) / 2)
    masses = np.exp(logits / float(towers.queries.tau[query]))
    order = np.argsort(-masses)
    reached = np.cumsum(masses[order]) / masses.sum()
    return order[: int((reached < recall).sum()) + 1].tolist()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_is_counted_query_by_query(way, towers, release, measured):
    """The lists of the other ways are those of the experiment `cutoffs`."""
    clicked = clicked_in(towers, "test")
    best = np.argsort(-(towers.queries.vectors[list(clicked)] @ towers.items.T), axis=1)
    strata = towers.corpus.strata[towers.rows("test")]
    for place, recall in enumerate(REQUESTED):
        if way == "nucleus":
            lists = [nucleus_by_hand(towers, query, recall) for query in clicked]
        else:
            (counts,) = counts_of(towers, release, way, [recall])
            lists = [row[:count].tolist() for row, count in zip(best, counts, strict=True)]
        pairs = zip(clicked.values(), lists, strict=True)
        shares = np.array([len(relevant & set(items)) / len(relevant) for relevant, items in pairs])
        for name, mask in groups_of(strata).items():
            received = measured["recall"][way][name][place]
            assert received == pytest.approx(shares[mask].mean(), abs=1e-9)


def test_maps_expect_what_they_reach_and_raw_laws_what_is_requested(release, measured):
    maps = release.calibration
    for way in ("cdf", "nucleus"):
        np.testing.assert_allclose(measured["expected"][way]["head"], REQUESTED)
    expected = np.minimum(REQUESTED, maps.recall.highest)
    np.testing.assert_allclose(measured["expected"]["level_one_map"]["overall"], expected)
    for name in STRATA:
        expected = np.interp(REQUESTED, maps.recall.knob_values, maps.strata[name].recalls)
        np.testing.assert_allclose(measured["expected"]["level"][name], expected)

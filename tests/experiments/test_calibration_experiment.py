"""What the recall knob keeps, query by query; coverage against loops and known chances."""

import numpy as np
import pytest
from random_towers import clicked_in, random_towers

from experiments.calibration_measured import ASKED, WAYS, measure
from experiments.coverage import coverage, telling_part
from experiments.released import released
from pebr_tf.cutoff.calibration import recall_map
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.metrics.ranked import RankedLists, Ranks
from pebr_tf.metrics.strata import STRATA


def random_lists(seed, queries=31, candidates=40, ties=False):
    """Falling scores less an offset; up to six relevant items a query, some no candidates."""
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
    ("ties", "floor", "limit"), [(False, 0, 100), (True, 1, 100), (True, 3, 20), (False, 2, 2)]
)
def test_the_telling_part_has_the_same_map_and_recall(ties, floor, limit):
    lists = random_lists(floor + limit, ties=ties)
    short = telling_part(lists, floor, limit)
    assert short.scores.shape[1] < lists.scores.shape[1]
    whole, part = recall_map(lists, floor, limit), recall_map(short, floor, limit)
    np.testing.assert_array_equal(part.cutoffs, whole.cutoffs)
    np.testing.assert_allclose(part.knob_values, whole.knob_values, atol=1e-12)
    assert len(whole.knob_values) > 2 or floor == limit
    for cutoff in (-1.5, 0.0, 1.0, 3.0):
        for query in range(len(lists)):
            expected = recall_by_hand(lists, query, cutoff, floor, limit)
            assert recall_by_hand(short, query, cutoff, floor, limit) == expected


@pytest.mark.parametrize(("ties", "floor", "limit"), [(False, 0, 100), (True, 1, 25)])
def test_coverage_is_that_of_loops(ties, floor, limit):
    lists = random_lists(7, ties=ties)
    asked = (0.2, 0.3, 0.5, 0.6)
    found = coverage(lists, asked, 6, floor, limit, seed=3)
    generator = np.random.default_rng(3)
    for pair in range(3):
        first = np.isin(np.arange(31), generator.permutation(31)[:15])
        for place, half in enumerate((first, ~first)):
            fitted = recall_map(lists.part(half), floor, limit)
            for share, kept in zip(asked, found.kept[2 * pair + place], strict=True):
                cutoff = fitted.cutoff(share)
                others = np.flatnonzero(~half)
                expected = [recall_by_hand(lists, row, cutoff, floor, limit) for row in others]
                assert kept == pytest.approx(np.mean(expected), abs=1e-12)
    assert found.queries == 31
    np.testing.assert_allclose(found.mean, found.kept.mean(axis=0))
    pairs = [(found.kept[2 * i] + found.kept[2 * i + 1]) / 2 for i in range(3)]
    np.testing.assert_allclose(found.standard_error, np.std(pairs, axis=0, ddof=1) / 3**0.5)
    assert found.chance == pytest.approx(np.mean(np.abs(found.kept - asked)[:, found.reached]))


def test_items_at_the_cutoff_are_kept():
    """Scores are whole numbers, and so are these cut-offs."""
    lists = random_lists(7, queries=4, ties=True)

    def whole(part, floor, limit):
        return KnobMap(np.array([0.2, 0.6]), np.array([1, -1], np.float32), len(part))

    found = coverage(lists, (0.2, 0.6), 4, 0, 100, fit=whole)
    for place, cutoff in enumerate((1, -1)):
        everyone = [recall_by_hand(lists, row, cutoff, 0, 100) for row in range(4)]
        above = [recall_by_hand(lists, row, cutoff + 0.5, 0, 100) for row in range(4)]
        assert np.mean(everyone) > np.mean(above)
        # Halves of two have the mean of all four between them.
        assert found.mean[place] == pytest.approx(np.mean(everyone))


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


def uncorrected(lists, floor, limit):
    """The share of the calibrate queries themselves, without n / (n + 1)."""
    found = recall_map(lists, floor, limit)
    # The shares of ten queries are tenths.
    order = np.sort(lists.at(*np.divmod(np.arange(len(lists)), 1)))[::-1]
    return KnobMap(np.arange(1, len(lists) + 1) / len(lists), order, found.queries)


@pytest.mark.parametrize(("fit", "expected"), [(shifted, 8 / 11), (uncorrected, 8 / 11)])
def test_a_map_that_promises_too_much_is_found_out(fit, expected):
    found = coverage(single_hits(20), (0.8,), 1_000, 0, 10, fit=fit)
    assert found.mean[0] == pytest.approx(expected, abs=0.012)
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


def kept_by_hand(towers, release, way, recall):
    """Share of its clicks that the list of each test query has, one by one."""
    level_temperature, calibrated = release.policy.level_temperature, release.calibration
    shares = []
    for query, relevant in clicked_in(towers, "test").items():
        cosines = (towers.items @ towers.queries.vectors[query]).astype(np.float64)
        tau = float(towers.queries.tau[query])
        logits = np.log((1 + cosines) / 2) / tau
        order = np.argsort(-cosines)
        if way == "cdf":
            exponent = 1 / tau + (towers.config.loss.convention == "pdf")
            long = int(((1 + cosines) / 2 >= (1 - recall) ** (1 / exponent)).sum())
        elif way == "nucleus":
            masses = np.exp(logits - logits.max())
            reached = np.cumsum(masses[order]) / masses.sum()
            long = int((reached < recall).sum()) + 1
        else:
            place = int(towers.corpus.strata[query])
            used = calibrated.recall
            offset = calibrated.strata[STRATA[place]].offset if way == "level" else 0.0
            top = logits.max()
            mean = np.exp((logits - top) / level_temperature).mean() if level_temperature else 1.0
            level = top + level_temperature * np.log(mean)
            cutoff = np.interp(recall, used.knob_values, used.cutoffs) + offset
            # Cut-offs are scores of items, so that rounding would decide.
            long = max(int((logits - level >= cutoff - 1e-4).sum()), calibrated.floor)
        shares.append(len(relevant & set(order[:long].tolist())) / len(relevant))
    return np.array(shares)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_is_counted_query_by_query(way, towers, release, measured):
    strata = towers.corpus.strata[towers.rows("test")]
    different = set()
    for place, recall in enumerate(ASKED):
        shares = kept_by_hand(towers, release, way, recall)
        different.add(round(shares.mean(), 6))
        assert measured["kept"][way]["overall"][place] == pytest.approx(shares.mean(), abs=1e-9)
        for number, name in enumerate(STRATA):
            if name in measured["queries"]:
                kept = measured["kept"][way][name][place]
                assert kept == pytest.approx(shares[strata == number].mean(), abs=1e-9)
    assert len(different) > 3 or way == "cdf"


def test_maps_promise_what_they_reach_and_raw_laws_what_is_asked(release, measured):
    maps = release.calibration
    for way in ("cdf", "nucleus"):
        np.testing.assert_allclose(measured["promised"][way]["head"], ASKED)
    expected = np.minimum(ASKED, maps.recall.highest)
    np.testing.assert_allclose(measured["promised"]["level_one_map"]["overall"], expected)
    for name in STRATA:
        expected = np.interp(ASKED, maps.recall.knob_values, maps.strata[name].recalls)
        np.testing.assert_allclose(measured["promised"]["level"][name], expected)

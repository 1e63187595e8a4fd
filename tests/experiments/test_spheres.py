"""Three queries and their lists against sorting by hand; points on the unit sphere."""

import numpy as np
import pytest
from random_towers import clicked_in, random_towers

from experiments.released import released
from experiments.spheres_measured import drawn_items, examples, measure, on_sphere, readable
from experiments.spheres_plots import facing


def unit(count, dimension=6, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def towers():
    return random_towers()


@pytest.fixture(scope="module")
def measured(towers):
    return measure(towers, 0.6, background=15, iterations=250)


def test_neighbours_stay_neighbours():
    """Two clouds far apart: most points are next to one of their own, by chance only half."""
    clouds = np.arange(200) // 100
    vectors = np.eye(6)[clouds] + 0.05 * np.random.default_rng(0).normal(size=(200, 6))
    points = on_sphere(vectors, 250)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(points, on_sphere(vectors, 250))
    nearest = np.argmax(points @ points.T - 2 * np.eye(200), axis=1)
    assert (clouds[nearest] == clouds).mean() > 0.8


def test_the_examples_are_in_the_middle_and_alike():
    counts = np.array([10, 50, 90, 4, 5, 6, 5, 5, 1, 2, 3])
    strata = np.array([0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2])
    texts = np.array(["wide"] * 11, object)
    clicks = np.full(11, 9)
    vectors = unit(11)
    # The most alike of the torso is not in its middle; the next is.
    vectors[3] = vectors[1]
    vectors[6] = vectors[1] + 0.1 * vectors[0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert examples(counts, strata, vectors, texts, clicks) == [1, 6, 9]
    texts[6] = "4k"
    assert examples(counts, strata, vectors, texts, clicks)[1] in (4, 7)
    texts[1], clicks[2] = "42", 3
    assert examples(counts, strata, vectors, texts, clicks)[0] == 0
    texts[:] = "x"
    assert examples(counts, strata, vectors, texts, clicks)[0] == 1
    without_head = examples(counts[3:], strata[3:], vectors[3:], texts[3:], clicks[3:])
    assert [strata[3 + place] for place in without_head] == [1, 2]


def test_of_equally_near_queries_the_one_with_more_clicks_is_taken():
    counts, clicks = np.array([8, 12, 10, 9]), np.array([4, 5, 1, 8])
    texts = np.array(["table lamp"] * 4, object)
    # The median is 9.5; the third has too few clicks.
    assert examples(counts, np.zeros(4, int), unit(4), texts, clicks) == [3]
    counts = np.array([8, 12, 10, 8])
    # The median is 9: the first and the last are as near.
    assert examples(counts, np.zeros(4, int), unit(4), texts, clicks) == [3]


def test_a_readable_query_is_short_and_has_a_word():
    assert all(map(readable, ("circular saw", "18v saws", "手机套装")))
    long = "a very long query that nobody reads"
    assert not any(map(readable, ("4k tv", "1234 5678", "line\nbreak", long)))


def test_what_is_shown_is_drawn():
    shown = [np.array([3, 99]), np.array([98, 3])]
    places = drawn_items(100, shown, 10)
    assert {3, 98, 99} <= set(places.tolist())
    assert 10 <= len(places) <= 13
    assert (np.diff(places) > 0).all()
    np.testing.assert_array_equal(places, drawn_items(100, shown, 10))
    np.testing.assert_array_equal(drawn_items(5, [np.array([2])], 50), np.arange(5))


def test_lists_are_those_of_sorting_by_hand(towers, measured):
    counts = released(towers).counts(0.6)
    assert measured["top_k"] == round(counts.mean())
    relevant = clicked_in(towers, "test")
    names = towers.corpus.queries.tolist()
    rows = towers.rows("test").tolist()
    for query in measured["queries"]:
        place = names.index(query["text"])
        assert query["count"] == counts[rows.index(place)]
        scores = {item: towers.items[item] @ towers.queries.vectors[place] for item in range(40)}
        order = sorted(scores, key=scores.get, reverse=True)
        for prefix, size in (("", query["count"]), ("fixed_", measured["top_k"])):
            assert query[f"{prefix}kept"] == len(relevant[place] & set(order[:size]))
            last = order[size - 1]
            assert query[f"{prefix}threshold"] == pytest.approx(scores[last], abs=1e-6)
            assert query[f"{prefix}last"] == towers.corpus.titles[last]
        assert query["items"].tolist() == order[: max(query["count"], measured["top_k"])]
        assert set(query["clicked"].tolist()) == relevant[place]
        assert query["first"] == towers.corpus.titles[order[0]]
        assert set(query["items"]) | relevant[place] <= set(measured["places"].tolist())
    assert [query["stratum"] for query in measured["queries"]] == ["head", "torso", "tail"]


@pytest.mark.parametrize("direction", [*np.eye(3), -np.eye(3)[2], np.array([0.3, -2, 1])])
def test_a_turned_sphere_shows_the_query_in_front(direction):
    rotation = facing(direction)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1)
    front = rotation @ direction / np.linalg.norm(direction)
    np.testing.assert_allclose(front, [0, 0, 1], atol=1e-12)

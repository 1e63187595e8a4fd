"""Three queries and their lists against sorting by hand; points on the unit sphere."""

import numpy as np
import pytest
from experiment_runs import clicked_in

from experiments.released import released
from experiments.spheres_measured import measure, on_sphere


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

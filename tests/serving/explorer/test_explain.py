"""The data of the page, against the responses of the service and brute force."""

import json
from dataclasses import replace

import numpy as np
import pytest
from evaluation_example import with_queries
from tiny_release import calibration

from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.errors import UserError
from pebr_tf.retrieval import ExactSearcher
from serving.explorer.explain import explain, histogram, stop_values

LIMIT = 150


def changed(retriever, policy="level", level_source="probe", searcher=None, **calibrated):
    return replace(
        retriever,
        searcher=searcher or retriever.searcher,
        calibration=calibration(policy, **calibrated),
        settings=replace(retriever.settings, level_source=level_source),
    )


def ids_at(content, stop):
    missed = set(stop["missed"])
    kept = [item["item_id"] for at, item in enumerate(content["items"]) if at not in missed]
    return kept[: stop["count"]]


def assert_agrees(retriever, content):
    """A third of the stops, and the last, are what the service answers."""
    for stop in [*content["stops"][::3], content["stops"][-1]]:
        answer = retriever.retrieve([content["query"]], content["knob"], stop["value"])
        items = answer.items
        where = (content["query"], content["knob"], stop["value"])
        assert ids_at(content, stop) == items.item_ids.tolist(), where
        assert stop["count"] == items.counts[0], where
        assert stop["truncated"] == items.truncated[0], where
        threshold = items.thresholds[0] if items.thresholds[0] > -1 else np.nan
        # The exponential of many numbers differs from that of one in its last bit.
        for name, expected, tolerance in (
            ("threshold", threshold, 1e-6),
            ("expected_recall", answer.expected_recall[0], 1e-5),
            ("level", answer.encoded.level[0], 1e-5),
        ):
            found = np.nan if stop[name] is None else stop[name]
            assert found == pytest.approx(expected, abs=tolerance, nan_ok=True), (name, where)


@pytest.mark.parametrize(
    "policy",
    ["level", "level_sample", "share", "cdf", "cdf_pdf", "score", "gap", "top_k", "nucleus"],
)
def test_stops_are_the_lists_of_the_service(retriever, policy):
    # Cut-offs where lists of the tiny release end at many different lengths; scores of policies by
    # rank or by distance from the best item are at most 0.
    scale = {"score": 0.2, "gap": 0.2, "top_k": 20, "nucleus": 0.3}.get(policy, 1)
    top = 0 if policy in ("gap", "top_k", "nucleus") else 3
    cutoffs = np.float32(scale) * np.linspace(top, top - 6, 4, dtype="f4")
    recall = KnobMap(np.array([0.2, 0.5, 0.75, 0.9]), cutoffs, 100)
    level_source = "sample" if policy == "level_sample" else "probe"
    policy = policy.removesuffix("_sample")
    other = changed(retriever, policy, level_source, recall=recall, errors=[0.01] * 4, strata={})
    content = explain(other, "red phone", LIMIT)
    assert (content["policy"], content["knob"]) == (policy, "recall")
    assert_agrees(other, content)
    counts = [stop["count"] for stop in content["stops"]]
    assert len(set(counts)) > 5, counts
    assert counts == sorted(counts)


@pytest.mark.parametrize("query", ["phone", "blue laptop bag"])
@pytest.mark.parametrize("knob", ["recall", "budget", "top_k", "score"])
def test_each_knob_of_each_stratum_agrees(retriever, query, knob):
    other = changed(retriever, floor=5)
    content = explain(other, query, LIMIT, knob)
    assert_agrees(other, content)
    first, last = content["stops"][0], content["stops"][-1]
    assert last["count"] > first["count"] >= 5
    if knob == "score":
        assert first["threshold"] == content["items"][4]["score"]
        assert (last["count"], last["truncated"], last["threshold"]) == (LIMIT, True, None)


def test_items_are_the_best_with_their_columns(retriever, vectors, item_ids):
    encoded = retriever.encoder.encode(["phone"])
    scores = vectors.astype(float) @ encoded.embedding[0].astype(float)
    order = np.argsort(-scores)[:7]
    content = explain(retriever, "phone", 7)
    assert [item["item_id"] for item in content["items"]] == item_ids[order].tolist()
    np.testing.assert_allclose([item["score"] for item in content["items"]], scores[order], 1e-6)
    titles = [row["title"] for row in retriever.payload.fields(item_ids[order])]
    assert [item["fields"] for item in content["items"]] == [{"title": each} for each in titles]
    assert content["columns"] == ["title"]
    # Items beyond the limit are counted too.
    assert content["stops"][-1]["count"] > 7
    for name in ("tau", "alpha", "beta", "background_alpha", "background_beta"):
        assert content[name] == pytest.approx(getattr(encoded, name)[0], rel=1e-6)


def test_description_of_the_release(retriever):
    content = explain(retriever, "red phone", 5)
    assert content["release"] == retriever.release.version
    assert content["default"] == {"knob": "recall", "value": 0.9}
    assert (content["catalogue"], content["floor"], content["limit"]) == (200, 1, LIMIT)
    assert (content["stratum"], content["family"]) == ("head", "beta")
    cutoffs = retriever.calibration.cutoff_for("recall", 0.5, np.array([0]))
    assert [s["cutoff"] for s in content["stops"] if s["value"] == 0.5] == cutoffs.tolist()
    # Plain JSON, without the NaN that JSON does not have.
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_the_background_is_that_of_the_sample(retriever, vectors):
    content = explain(retriever, "phone", 5)
    # The sample of a small index is all of it.
    cosines = vectors @ retriever.encoder.encode(["phone"]).embedding[0]
    edges, counts = content["background"]["edges"], content["background"]["counts"]
    np.testing.assert_allclose([edges[0], edges[-1]], [cosines.min(), cosines.max()], atol=1e-6)
    inside = [(cosines < edge).sum() for edge in np.array(edges[1:-1])]
    np.testing.assert_allclose(np.cumsum(counts)[:-1], inside, atol=1)
    assert sum(counts) == 200
    assert histogram(np.empty(0, np.float32)) == {"edges": [], "counts": []}


def test_held_out_clicks_of_a_query_that_the_evaluation_has(retriever, tmp_path):
    evaluation = with_queries("phone", "cable")
    evaluation.examples[0].clicks.extend([0.75, 0.5])
    evaluation.save(tmp_path)
    other = replace(retriever, release=replace(retriever.release, directory=tmp_path))
    assert explain(other, "phone", 5)["clicks"] == [0.75, 0.5]
    assert explain(other, "red phone", 5)["clicks"] == []
    assert explain(retriever, "phone", 5)["clicks"] == []


class ForgetfulSearcher(ExactSearcher):
    """Misses one item, either in searches for the best or in all others."""

    forgotten, in_best = "", False

    def _search(self, request):
        found = super()._search(request)
        if (request.top_k is not None) != self.in_best:
            return found
        return found.keep(found.item_ids != self.forgotten)


@pytest.mark.parametrize("in_best", [False, True])
def test_an_item_that_an_approximate_search_missed(retriever, vectors, item_ids, in_best):
    searcher = ForgetfulSearcher(vectors, item_ids)
    searcher.forgotten = explain(retriever, "phone", 5)["items"][3]["item_id"]
    searcher.in_best = in_best
    other = changed(retriever, "level", "sample", searcher)
    content = explain(other, "phone", LIMIT, "score")
    assert_agrees(other, content)
    assert content["items"][3]["item_id"] == searcher.forgotten
    assert len(content["items"]) == LIMIT
    missed = {stop["count"]: stop["missed"] for stop in content["stops"]}
    assert max(missed) > 3
    for count, indices in missed.items():
        assert indices == ([3] if count > 3 and not in_best else [])


def test_stops_run_from_short_lists_to_long_ones_and_hold_the_default(retriever):
    other = changed(retriever, default_value=0.835)
    recall = stop_values(other, "recall")
    assert recall == sorted([*(percent / 100 for percent in range(1, 100)), 0.835])
    assert 0.835 not in stop_values(other, "score")
    score = stop_values(retriever, "score")
    assert score == sorted(score, reverse=True)
    assert (score[0], score[-1]) == (1, -1)
    for knob in ("budget", "top_k"):
        values = stop_values(changed(retriever, floor=3), knob)
        assert (values[0], values[-1]) == (3, LIMIT)
        assert values == sorted(set(values))
        assert all(value.is_integer() for value in values)


def test_an_unknown_knob(retriever):
    with pytest.raises(UserError) as caught:
        explain(retriever, "phone", 5, "sure")
    assert str(caught.value) == (
        "knob must be one of recall, share, budget, top_k, score. Received: 'sure'."
    )

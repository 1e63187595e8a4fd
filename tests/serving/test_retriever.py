"""Answers from a release, against a brute-force search of all items."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from level_oracle import level_of
from scipy import stats
from tiny_release import calibration, learned_law, titles

from pebr_tf.errors import UserError
from pebr_tf.release import payload
from pebr_tf.release.payload import Payload
from pebr_tf.retrieval import ExactSearcher

QUERIES = ["red phone", "phone", "blue laptop bag", "cable"]


@pytest.fixture(scope="module")
def cosines(retriever, vectors):
    """[4, 200] float64 cosines of all pairs, and what the model says of the queries."""
    encoded = retriever.encoder.encode(QUERIES)
    return encoded.embedding.astype(float) @ vectors.T.astype(float), encoded


def recalibrated(retriever, policy="level", **changes):
    return replace(retriever, calibration=calibration(policy, **changes))


def recalls_of(encoded, thresholds):
    """By SciPy, through the map of the shares."""
    above = stats.beta.sf((1 + thresholds) / 2, encoded.alpha, encoded.beta)
    return np.interp(above, [0, 0.5, 1], [0, 0.6, 1])


def found_of(answer):
    return [set(answer.items.row(index)[0]) for index in range(len(answer))]


def items_where(item_ids, mask):
    return [set(item_ids[row]) for row in mask]


def test_recall_ends_each_list_at_its_stratum_s_cutoff_above_its_level(
    retriever, cosines, item_ids
):
    scores, encoded = cosines
    answer = retriever.retrieve(QUERIES, "recall", 0.75)
    logits = np.log((1 + scores) / 2) / encoded.tau[:, None]
    levels = level_of(logits, 0.6)
    # At .75 the cut-off is 0; head and torso have offsets.
    cutoffs = np.array([-1, 0.5, 0, 0])
    assert encoded.stratum.tolist() == [0, 1, 2, 2]
    np.testing.assert_allclose(answer.encoded.level, levels, atol=1e-3)
    wanted = items_where(item_ids, logits - levels[:, None] >= cutoffs[:, None])
    assert found_of(answer) == wanted
    assert all(1 < len(row) < 150 for row in wanted)
    thresholds = 2 * np.exp(encoded.tau * (cutoffs + levels)) - 1
    np.testing.assert_allclose(answer.items.thresholds, thresholds, atol=1e-4)
    np.testing.assert_allclose(answer.expected_recall, recalls_of(encoded, thresholds), atol=1e-3)
    assert [answer.stratum(index) for index in range(4)] == ["head", "torso", "tail", "tail"]
    assert not answer.items.truncated.any()
    # The law of a list has the level that ended it.
    assert answer.level_source == "probe"
    alpha, beta, _ = learned_law().numpy_laws(encoded.tau, levels, encoded.frequency)
    np.testing.assert_allclose(answer.encoded.alpha, alpha, rtol=1e-2)
    np.testing.assert_allclose(answer.encoded.beta, beta, rtol=1e-2)
    default, requested = retriever.retrieve(QUERIES), retriever.retrieve(QUERIES, "recall", 0.9)
    assert (default.knob, default.value) == ("recall", 0.9)
    assert found_of(default) == found_of(requested)
    assert len(retriever.retrieve([])) == 0


def test_budget_has_the_offsets_of_recall(retriever, cosines, item_ids):
    scores, encoded = cosines
    answer = retriever.retrieve(QUERIES, "budget", 10)
    logits = np.log((1 + scores) / 2) / encoded.tau[:, None]
    above = logits - level_of(logits, 0.6)[:, None] >= np.array([[-1], [0.5], [0], [0]])
    assert found_of(answer) == items_where(item_ids, above)
    wanted = recalls_of(encoded, answer.items.thresholds)
    np.testing.assert_allclose(answer.expected_recall, wanted, atol=1e-5)


def test_a_share_is_that_of_every_query(retriever, cosines, item_ids):
    scores, encoded = cosines
    answer = retriever.retrieve(QUERIES, "share", 0.6)
    assert answer.level_source == "sample"
    np.testing.assert_allclose(answer.encoded.alpha, encoded.alpha, rtol=1e-5)
    medians = 2 * stats.beta.median(encoded.alpha, encoded.beta) - 1
    passed = scores >= medians[:, None]
    passed[np.arange(4), scores.argmax(axis=1)] = True
    assert found_of(answer) == items_where(item_ids, passed)
    wanted = recalls_of(encoded, answer.items.thresholds)
    np.testing.assert_allclose(answer.expected_recall, wanted, atol=1e-5)


def test_an_unfamiliar_query_gets_few_items_and_no_promise(retriever):
    queries = ["phone", "qq phone"]
    for knob, value in (("recall", 0.9), ("share", 0.9), ("budget", 50)):
        answer = retriever.retrieve(queries, knob, value)
        assert answer.encoded.unfamiliar.tolist() == [False, True]
        assert np.isnan(answer.expected_recall).tolist() == [False, True]
        assert answer.items.counts[1] == 1
        assert answer.items.thresholds[1] == answer.items.row(1)[1].min()
    assert retriever.retrieve(queries, "top_k", 7).items.counts.tolist() == [7, 7]
    half = retriever.retrieve(queries, "score", -1.0)
    assert half.notes == ("score -1 returns 150 items per query on average, 75% of the 200 items.",)
    more = replace(retriever, settings=replace(retriever.settings, unfamiliar_items=5))
    assert more.retrieve(queries, "recall", 0.9).items.counts[1] == 5
    assert more.retrieve(queries, "recall", 0.9, limit=3).items.counts[1] == 3


def test_top_k_and_score_promise_nothing(retriever, cosines, item_ids):
    scores, _ = cosines
    answer = retriever.retrieve(QUERIES, "top_k", 7)
    best = np.argsort(-scores, axis=1)[:, :7]
    assert found_of(answer) == [set(item_ids[row]) for row in best]
    assert np.isnan(answer.expected_recall).all()
    answer = retriever.retrieve(QUERIES, "score", 0.5)
    assert found_of(answer) == items_where(item_ids, scores >= 0.5)
    assert np.isnan(answer.expected_recall).all()


def test_floor_and_limit_hold_for_every_knob(retriever, cosines, item_ids):
    scores, _ = cosines
    answer = retriever.retrieve(QUERIES, "score", 1.0)
    assert found_of(answer) == [{item_ids[best]} for best in scores.argmax(axis=1)]
    np.testing.assert_allclose(answer.items.thresholds, scores.max(axis=1), atol=1e-6)
    for knob, value in (("score", -1.0), ("top_k", 150)):
        answer = retriever.retrieve(QUERIES, knob, value)
        assert (answer.items.counts == 150).all()
        assert answer.items.truncated.all() == (knob == "score")
    answer = retriever.retrieve(QUERIES, "score", -1.0, limit=3)
    assert found_of(answer) == [set(item_ids[row]) for row in np.argsort(-scores)[:, :3]]
    assert answer.items.truncated.all()


def test_a_limit_below_the_floor_cuts_the_floor(retriever, cosines, item_ids):
    best = np.argsort(-cosines[0], axis=1)
    broad = recalibrated(retriever, floor=5)
    for knob in (("recall", 0.2), ("score", 1.0)):
        assert all(len(row) >= 5 for row in found_of(broad.retrieve(QUERIES, *knob)))
        answer = broad.retrieve(QUERIES, *knob, limit=3)
        assert found_of(answer) == [set(item_ids[row]) for row in best[:, :3]]
        assert answer.items.truncated.all()
    with pytest.raises(UserError, match=r"top_k must be a whole number from 5 to 150\."):
        broad.retrieve(QUERIES, "top_k", 4)


def test_the_exponential_family(retriever, cosines, item_ids):
    scores, encoded = cosines
    answer = recalibrated(retriever, "cdf", family="exponential").retrieve(QUERIES, "recall", 0.9)
    cutoffs = np.array([-2.5, -1, -1.5, -1.5])
    passed = (scores - 1) / encoded.tau[:, None] >= cutoffs[:, None]
    passed[np.arange(4), scores.argmax(axis=1)] = True
    assert found_of(answer) == items_where(item_ids, passed)


def test_rows_carry_the_payload(retriever, item_ids):
    answer = retriever.retrieve(["white cable 3"], "top_k", 2)
    title_of = dict(zip(item_ids.tolist(), titles(), strict=True))
    rows = answer.rows(0)
    assert rows[0]["title"] == "white cable 3"
    assert rows[0]["score"] == pytest.approx(1, abs=1e-6)
    assert [row["title"] for row in rows] == [title_of[row["item_id"]] for row in rows]
    assert answer.rows(0, limit=1) == rows[:1]
    without = retriever.payload.fields(np.array(["item-003", "unknown", "zzz"]))[1:]
    assert without == [{}, {}]


def test_fields_are_kept_and_dropped(monkeypatch):
    monkeypatch.setattr(payload, "KEPT_ITEMS", 3)
    monkeypatch.setattr(payload, "KEPT_CHOICES", 2)
    table = pa.table(
        {"item_id": list("abcde"), "title": ["A", None, "C", "D", "E"], "n": ["1"] * 5}
    )
    catalogue, looked_up = Payload(table), []
    values = catalogue.values
    monkeypatch.setattr(
        catalogue, "values", lambda ids, *names: looked_up.append(len(ids)) or values(ids, *names)
    )

    def titles_of(ids, columns=("title",)):
        return [each.get("title") for each in catalogue.fields(np.array(list(ids)), columns)]

    assert titles_of("abb") == ["A", None, None]
    assert titles_of("bca") == [None, "C", "A"]
    assert looked_up == [2, 1]
    # A fourth and a fifth item do not fit: all are dropped, and the list is looked up again.
    assert titles_of("dea") == ["D", "E", "A"]
    assert looked_up == [2, 1, 3]
    # Other columns are another choice, and a third choice drops the others.
    assert catalogue.fields(np.array(["b", "x"])) == [{"n": "1"}, {}]
    assert catalogue.fields(np.array(["a"]), ()) == [{}]
    assert titles_of("d") == ["D"]
    assert looked_up == [2, 1, 3, 2, 1, 1]


def test_an_empty_index_answers_with_empty_lists(retriever, vectors):
    empty = ExactSearcher(vectors[:0], np.array([], str), background=vectors[:0])
    nothing = replace(retriever, searcher=empty)
    for knob, value in (("recall", 0.9), ("top_k", 3), ("score", 0.5)):
        assert nothing.retrieve(QUERIES, knob, value).items.counts.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("recall", 1.0, r"recall must be a number above 0 and below 1\. Received: 1\.0\."),
        ("recall", 0, r"recall must be a number above 0 and below 1\. Received: 0\."),
        ("recall", float("nan"), r"recall must be .* Received: nan\."),
        ("budget", 0.5, r"budget must be a number from 1 to 150\. Received: 0\.5\."),
        ("budget", 151, r"budget must be a number from 1 to 150\. Received: 151\."),
        ("top_k", 2.5, r"top_k must be a whole number from 1 to 150\. Received: 2\.5\."),
        ("score", -1.1, r"score must be a number from -1 to 1\. Received: -1\.1\."),
        ("breadth", 3, r"one of recall, share, budget, top_k, score\. Received: 'breadth'"),
        (None, 3, r"value requires a knob\. Received: 3 without one\."),
    ],
)
def test_knobs_out_of_range_are_rejected(retriever, knob, value, message):
    with pytest.raises(UserError, match=message):
        retriever.retrieve(QUERIES, knob, value)


def test_limits_out_of_range_and_blank_queries_are_rejected(retriever):
    for limit in (0, 151, 2.0):
        with pytest.raises(UserError, match=r"limit must be a whole number from 1 to 150\."):
            retriever.retrieve(QUERIES, limit=limit)
    with pytest.raises(UserError, match=r"query must be a text that is not blank\. Received: ' '"):
        retriever.retrieve(["phone", " "])


def test_payload_that_is_none_is_rejected(tmp_path):
    (tmp_path / "payload.parquet").write_text("none")
    with pytest.raises(UserError, match="must be a Parquet file"):
        Payload.load(tmp_path / "payload.parquet")


def test_items_whose_hashes_are_the_same_are_told_apart(monkeypatch):
    monkeypatch.setattr(
        payload, "_hashes", lambda ids: np.array([len(each) for each in ids], np.int64)
    )
    ids = ["a", "b", "cc", "dd", "ee", "fff"]
    table = pa.table({"item_id": ids, "title": [each.upper() for each in ids]})
    found = Payload(table).values(np.array(["ee", "fff", "zz", "b", "a", "gggg", "dd", "cc"]))
    assert found == {"title": ["EE", "FFF", None, "B", "A", None, "DD", "CC"]}

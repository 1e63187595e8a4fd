"""The self-test of a release: what counts as the same answer, and what a push makes of it."""

import dataclasses
import json
import logging
import re
import shutil

import pytest
import tensorflow as tf
from tiny_release import write_parts

from pebr_tf.errors import UserError
from serving import self_test
from serving.push import push
from serving.release import latest_release, read_release, versions
from serving.retriever import Retriever
from serving.self_test import Recorded, check, difference

QUERIES = ("red phone", "phone", "white laptop bag", "手机")
# The last two scores are closer than rounding is allowed to move them.
ANSWER = Recorded(
    query="phone",
    knob="recall",
    value=0.9,
    count=250,
    threshold=0.4,
    item_ids=("a", "b", "c", "d"),
    scores=(0.9, 0.8, 0.70004, 0.7),
)


@pytest.fixture(scope="module")
def examples(tmp_path_factory, tower_files):
    """Parts whose evaluation has examples, two of them of no use."""
    queries = (*QUERIES, "phone", "  ")
    return write_parts(tmp_path_factory.mktemp("examples"), *tower_files, examples=queries)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory, examples):
    """A release that was tried."""
    return push(tmp_path_factory.mktemp("tried"), examples)


@pytest.fixture(scope="module")
def loaded(pushed):
    return Retriever.load(pushed.directory)


def content(release):
    return json.loads(release.path("self_test.json").read_text())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"threshold": 0.4009},
        {"count": 255},
        {"count": 245},
        {"scores": (0.90009, 0.80009, 0.70004, 0.7)},
        # Near-ties change places.
        {"item_ids": ("a", "b", "d", "c")},
        # One from beyond the best takes the place of one of the near-ties at the end.
        {"item_ids": ("a", "b", "c", "e")},
        {"item_ids": ("a", "b", "e", "d")},
        # The last crossed the threshold.
        {"item_ids": ("a", "b", "c"), "scores": (0.9, 0.8, 0.70004)},
        {"item_ids": ("a", "b", "c", "d", "e"), "scores": (0.9, 0.8, 0.70004, 0.7, 0.4)},
        {"item_ids": (), "scores": ()},
    ],
)
def test_rounding_is_no_difference(changes):
    assert difference(ANSWER, dataclasses.replace(ANSWER, **changes)) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threshold": 0.4011}, "threshold 0.40110 instead of 0.40000"),
        ({"threshold": None}, "threshold none instead of 0.40000"),
        ({"count": 256}, "256 items instead of 250"),
        ({"count": 244}, "244 items instead of 250"),
        ({"scores": (0.9, 0.8, 0.7, 0.6998)}, "score 0.69980 at rank 4 instead of 0.70000"),
        ({"item_ids": ("b", "a", "c", "d")}, "item 'b' at rank 1 instead of 'a'"),
        ({"item_ids": ("a", "e", "c", "d")}, "item 'e' at rank 2 instead of 'b'"),
        ({"item_ids": ("c", "b", "a", "d")}, "item 'c' at rank 1 instead of 'a'"),
    ],
)
def test_more_than_rounding_is_named(changes, words):
    assert difference(ANSWER, dataclasses.replace(ANSWER, **changes)) == words


def test_short_lists_may_differ_by_two_items():
    short = dataclasses.replace(ANSWER, count=4)
    assert difference(short, dataclasses.replace(short, count=6)) is None
    longer = dataclasses.replace(short, count=7)
    assert difference(short, longer) == "7 items instead of 4"
    assert difference(dataclasses.replace(ANSWER, threshold=None), ANSWER) is not None


def test_a_push_records_what_the_release_answers(pushed, loaded, retriever):
    """`retriever` is of a release that was made of equal parts, and pushed untried."""
    assert "self_test.json" in pushed.manifest.files
    answers = content(pushed)["answers"]
    asked = [(answer["knob"], answer["query"]) for answer in answers]
    assert asked == [(knob, query) for knob in (None, "top_k") for query in QUERIES]
    for answer in answers:
        found = retriever.retrieve([answer["query"]], answer["knob"], answer["value"])
        item_ids, scores = found.items.row(0)
        assert answer["count"] == len(item_ids) >= len(answer["item_ids"])
        assert answer["item_ids"] == item_ids[:10].tolist()
        assert answer["scores"] == pytest.approx(scores[:10].tolist(), abs=1e-6)
        if answer["knob"] is None:
            assert answer["threshold"] == pytest.approx(float(found.items.thresholds[0]), abs=1e-6)
        else:
            assert answer["count"] == 10
    check(loaded)
    check(Retriever.load(pushed.directory))


def test_a_release_that_answers_otherwise_is_refused(tmp_path, loaded, pushed):
    folder = shutil.copytree(pushed.directory, tmp_path / "copy")
    other = Retriever.load(folder)
    answers = content(pushed)["answers"]
    answers[5]["scores"][2] += 0.01
    (folder / "self_test.json").write_text(json.dumps({"answers": answers}))
    wrong, right = answers[5]["scores"][2], answers[5]["scores"][2] - 0.01
    sentence = (
        f"{folder} must answer as when it was pushed. Received: for 'phone' by top_k 10, "
        f"score {right:.5f} at rank 3 instead of {wrong:.5f}."
    )
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        check(other)
    answers[0]["threshold"] = None
    (folder / "self_test.json").write_text(json.dumps({"answers": answers}))
    with pytest.raises(UserError, match=r"'red phone' by the default knob, threshold 0\."):
        check(other)


@pytest.mark.parametrize("text", ["{", "[]", '{"answers": [{"query": "phone"}]}', '{"answers": 3}'])
def test_what_is_no_self_test_is_refused(tmp_path, pushed, text):
    folder = shutil.copytree(pushed.directory, tmp_path / "copy")
    loaded = Retriever.load(folder)
    (folder / "self_test.json").write_text(text)
    with pytest.raises(UserError, match=r"self_test\.json must be the self-test of a release\. Re"):
        check(loaded)


def test_a_release_from_before_there_were_self_tests_passes(retriever, caplog):
    assert not retriever.release.path("self_test.json").exists()
    with caplog.at_level(logging.INFO):
        check(retriever)
    assert f"Release {retriever.release.version} has no self-test." in caplog.messages


def test_a_push_without_examples_says_so(tmp_path, parts, caplog):
    release = push(tmp_path, parts)
    assert content(release) == {"answers": []}
    assert "The evaluation has no examples: no warm-up, and an empty self-test." in caplog.messages
    check(Retriever.load(release.directory))


def test_a_push_adds_warm_up_requests_to_its_own_copy(pushed, examples):
    name = "query_model/assets.extra/tf_serving_warmup_requests"
    assert name in pushed.manifest.files
    assert len(list(tf.data.TFRecordDataset(str(pushed.path(name))))) > 0
    assert not (examples.cutoff / name).exists()
    assert not (examples.cutoff / "manifest.json").exists()


@pytest.fixture
def damaged(tmp_path, examples):
    """A copy of the parts to damage, and a folder that has a release."""
    for name in ("cutoff", "index", "evaluation"):
        shutil.copytree(getattr(examples, name), tmp_path / name)
    folders = {name: tmp_path / name for name in ("cutoff", "index", "evaluation")}
    (tmp_path / "releases/7").mkdir(parents=True)
    return dataclasses.replace(examples, **folders)


def refused(releases, parts):
    """What a push says that leaves everything as it was."""
    with pytest.raises(UserError) as caught:
        push(releases, parts)
    assert [path.name for path in releases.iterdir()] == ["7"]
    assert str(caught.value).count("\n") == 0
    assert str(releases) not in str(caught.value)
    return str(caught.value)


def test_a_model_that_does_not_load_is_not_pushed(tmp_path, damaged):
    (damaged.cutoff / "query_model/saved_model.pb").write_bytes(b"no model")
    sentence = refused(tmp_path / "releases", damaged)
    assert sentence.startswith(
        "a release must load and answer before it is pushed. Received: query_model must be a "
    )


def test_an_index_that_does_not_load_is_not_pushed(tmp_path, damaged):
    path = damaged.index / "index/ids.npy"
    path.write_bytes(path.read_bytes()[:-8])
    assert refused(tmp_path / "releases", damaged).startswith(
        "a release must load and answer before it is pushed. Received: index/ids.npy must have SHA"
    )


def test_a_release_that_does_not_answer_the_same_twice_is_not_pushed(
    tmp_path, damaged, monkeypatch
):
    record = self_test.record

    def noisy(retriever, queries):
        answers = record(retriever, queries)
        return [dataclasses.replace(answers[0], count=answers[0].count + 9), *answers[1:]]

    monkeypatch.setattr(self_test, "record", noisy)
    assert "must answer as when it was pushed. Received: for 'red phone' by the default" in refused(
        tmp_path / "releases", damaged
    )


def test_a_push_is_linked_for_tf_serving(pushed):
    releases = pushed.directory.parent
    assert versions(releases) == [pushed.version]
    link = releases / "query_model" / str(pushed.version)
    assert link.resolve() == pushed.path("query_model").resolve()
    assert read_release(latest_release(releases)) == pushed

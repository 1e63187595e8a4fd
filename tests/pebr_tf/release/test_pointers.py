"""Pointers: which model is the newest, what is recorded, and what is rejected."""

import json
import random

import pytest
from withdrawals import withdraw

from pebr_tf import storage
from pebr_tf.config import Config
from pebr_tf.release.pointers import BlessedModel, Pointers


@pytest.fixture(params=["local", "remote"])
def pointers(request, tmp_path, memory_store):
    """Pointers and releases 1 to 9, here or in a bucket; (tmp_path / "towers") is a model."""
    root = str(tmp_path) if request.param == "local" else "ram://bucket"
    for version in range(1, 10):
        storage.write_bytes(f"{root}/releases/{version}/manifest.json", b"")
        storage.write_bytes(f"{root}/releases/{version}/query_model/file", b"")
    storage.write_bytes(tmp_path / "towers" / "variables" / "index", b"weights")
    return Pointers(f"{root}/run/pointers/shop", f"{root}/releases")


def push(pointers, tmp_path, version, examples):
    towers = pointers.keep_towers(str(tmp_path / "towers"))
    blessed = BlessedModel(version, examples, towers)
    pointers.record(version, blessed)
    return blessed


def test_pipelines_do_not_share_pointers():
    config = Config().replace("pipeline.root", "gs://shop/run")
    assert Pointers.folder_of(config) == "gs://shop/run/pointers/pebr"
    other = config.replace("pipeline.name", "other")
    assert Pointers.folder_of(other) == "gs://shop/run/pointers/other"


def test_the_last_accepted_statistics(pointers):
    assert pointers.accepted_statistics() is None
    for statistics in (b"first", b"\x00second"):
        pointers.accept(statistics)
        assert pointers.accepted_statistics() == statistics


def test_the_newest_model_that_was_trained_on_other_examples(pointers, tmp_path):
    assert pointers.newest_model() is None
    first = push(pointers, tmp_path, 1, "monday")
    storage.write_bytes(tmp_path / "towers" / "variables" / "index", b"of tuesday")
    second = push(pointers, tmp_path, 2, "tuesday")
    assert pointers.newest_model() == second
    assert pointers.newest_model(other_than="tuesday") == first
    assert pointers.newest_model(other_than="monday") == second
    for model, content in {first: b"weights", second: b"of tuesday"}.items():
        assert storage.read_bytes(f"{pointers.towers(model)}/variables/index") == content


def test_the_towers_of_an_older_pointer_have_the_name_of_the_version(pointers):
    storage.write_bytes(f"{pointers.folder}/blessed/5.json", b'{"model": 4, "examples": "monday"}')
    assert pointers.newest_model() == BlessedModel(4, "monday", "4")


def test_the_newest_of_many_is_that_of_a_plain_search(tmp_path):
    generator = random.Random(4)
    for attempt in range(100):
        pointers = Pointers(str(tmp_path / str(attempt)), str(tmp_path / "releases"))
        versions = sorted(generator.sample(range(1, 40), 12))
        pushed = []
        for version in versions:
            earlier = [model for _, model in pushed]
            again = earlier and generator.random() < 0.5
            model = (
                generator.choice(earlier)
                if again
                else BlessedModel(version, generator.choice("abc"), str(version))
            )
            pointers.record(version, model)
            pushed.append((version, model))
        gone = set(generator.sample(versions, 4))
        content = {str(version): {"reason": "", "time": ""} for version in gone}
        storage.write_bytes(tmp_path / "releases/withdrawn.json", json.dumps(content).encode())
        for other in (None, "a", "b"):
            left = [
                model
                for version, model in pushed
                if version not in gone and model.examples != other
            ]
            expected = max(left, key=lambda model: model.model, default=None)
            assert pointers.newest_model(other_than=other) == expected


def test_a_push_of_a_superseded_or_withdrawn_model_is_rejected(pointers, tmp_path, rejection):
    push(pointers, tmp_path, 5, "monday")
    taken = pointers.newest_model()
    pointers.require_newest(taken)
    pointers.record(6, taken)
    pointers.require_newest(taken)
    push(pointers, tmp_path, 7, "tuesday")
    start = (
        "an index-only run must push the newest blessed model that is not withdrawn: run it again. "
        "Received: that of release 5, where "
    )
    assert rejection(pointers.require_newest, taken) == f"{start}release 7 has the newest."
    withdraw(pointers.releases, 7)
    pointers.require_newest(taken)
    for version in (5, 6):
        withdraw(pointers.releases, version)
    assert rejection(pointers.require_newest, taken) == f"{start}none is left."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "must be readable JSON. Received: Expecting property name "),
        (b"[]", "must hold a model and its examples. Received: []."),
        (b'{"model": 5}', "must hold a model and its examples. Received: {'model': 5}."),
        (
            b'{"model": 5, "examples": "", "towers": 5}',
            "must hold a model and its examples. Received: "
            "{'model': 5, 'examples': '', 'towers': 5}.",
        ),
        (
            b'{"model": "5", "examples": ""}',
            "must hold a model and its examples. Received: {'model': '5', 'examples': ''}.",
        ),
    ],
)
def test_a_bad_pointer_is_rejected_by_its_name(pointers, rejection, content, sentence):
    path = f"{pointers.folder}/blessed/5.json"
    storage.write_bytes(path, content)
    assert rejection(pointers.newest_model).startswith(f"{path} {sentence}")
    # Not a version, and so not a pointer.
    storage.write_bytes(f"{pointers.folder}/blessed/notes.json", b"")
    withdraw(pointers.releases, 5)
    assert pointers.newest_model() is None


def test_an_artifact_of_an_earlier_run_states_its_model(tmp_path):
    assert BlessedModel.find(str(tmp_path)) is None
    blessed = BlessedModel(5, "monday", "towers")
    (tmp_path / BlessedModel.FILE).write_text(blessed.to_json())
    assert BlessedModel.find(str(tmp_path)) == blessed

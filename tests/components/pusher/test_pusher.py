"""Pusher's executor on artifacts in a folder: what is on disk after it."""

import json
import os
import shutil
from pathlib import Path

import pytest
import tiny_release
from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.components.example_gen import driver
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing
from withdrawals import withdraw

from components.artifacts import CutoffModel, PushedRelease, RetrievalEvaluation, RetrievalIndex
from components.last_blessed_model.executor import examples_identity, reading_of
from components.pusher.executor import PusherExecutor
from pebr_tf import storage
from pebr_tf.data.automatic import resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.errors import UserError
from pebr_tf.release.pointers import BlessedModel, Pointers
from pebr_tf.release.release import Release, find_release
from pebr_tf.release.remote import fetch
from pebr_tf.release.versions import roll_back, versions
from serving.self_test import SelfTest

pytestmark = pytest.mark.slow

CONFIG = tiny_release.CONFIG.replace("cutoff.default_value", 0.7)
SIZE = LogSize(rows=100, queries=10, items=20)
KINDS = {
    "cutoff": CutoffModel,
    "index": RetrievalIndex,
    "evaluation": RetrievalEvaluation,
    "blessing": ModelBlessing,
    "examples": Examples,
    "model": Model,
}


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """Folders of cutoff, index and evaluation, as the components leave them; do not write to it."""
    folder = tmp_path_factory.mktemp("artifacts")
    model = folder / "model/Format-Serving"
    towers = tiny_release.write_towers(model, folder / "vocabulary")
    examples = ["red phone", "phone"]
    tiny_release.write_parts(folder, model, towers, CONFIG, examples)
    SIZE.save(folder / "examples")
    return folder


def artifact_at(kind, folder):
    artifact = kind()
    artifact.uri = str(folder)
    return artifact


def inputs_at(artifacts, blessed=1, span=0):
    """The executor's inputs, with the properties that evaluator and ExampleGen give them."""
    inputs = {name: [artifact_at(kind, artifacts / name)] for name, kind in KINDS.items()}
    inputs["blessing"][0].set_int_custom_property("blessed", blessed)
    found = {"span": span, "version": None, "input_fingerprint": "fingerprint"}
    driver.update_output_artifact(found, inputs["examples"][0].mlmd_artifact)
    return inputs


def run(inputs, folder, releases):
    release = artifact_at(PushedRelease, folder / "release")
    config = CONFIG.replace_all(
        {"pipeline.root": str(folder / "root"), "pipeline.releases": str(releases)}
    )
    properties = {
        "config": CONFIG.to_yaml(comments=False),
        "pointers": Pointers.folder_of(config),
        "releases": str(releases),
    }
    PusherExecutor().Do(inputs, {"release": [release]}, properties)
    return release


def push(artifacts, folder, **properties):
    return run(inputs_at(artifacts, **properties), folder, folder / "releases")


def test_a_blessed_model_becomes_a_release(artifacts, tmp_path):
    artifact = push(artifacts, tmp_path, span=5)
    release = Release.load(find_release(tmp_path / "releases"))
    assert release.manifest.span == 5
    assert release.manifest.model is None
    assert release.config() == resolve(CONFIG, SIZE)
    assert not (release.directory / "vectors.npy").exists()
    answers = json.loads((release.directory / "self_test.json").read_text())["answers"]
    assert {answer["query"] for answer in answers} == {"red phone", "phone"}
    link = tmp_path / "releases/query_model" / str(release.version)
    assert link.resolve() == (release.directory / "query_model").resolve()
    assert artifact.get_int_custom_property("pushed") == 1
    assert artifact.get_int_custom_property("version") == release.version
    assert json.loads((tmp_path / "release/release.json").read_text()) == {
        "version": release.version,
        "path": str(release.directory),
    }
    # Later runs start from its model.
    blessed = pointers_at(tmp_path).newest_model()
    assert blessed.model == release.version
    (examples,) = inputs_at(artifacts)["examples"]
    assert blessed.examples == examples_identity(examples, reading_of(CONFIG))
    towers = Path(pointers_at(tmp_path).towers(blessed))
    assert content_of(towers) == content_of(artifacts / "model/Format-Serving")


def content_of(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


def test_what_is_not_blessed_is_not_pushed(artifacts, tmp_path):
    artifact = push(artifacts, tmp_path, blessed=0)
    assert artifact.get_int_custom_property("pushed") == 0
    assert not artifact.has_custom_property("version")
    assert sorted(os.listdir(tmp_path)) == ["release"]
    content = json.loads((tmp_path / "release/release.json").read_text())
    assert content == {"version": None, "path": None}


def as_in_kubeflow(artifact, title):
    """What a container of Kubeflow v2 gets to see of an artifact."""
    message = kubeflow_v2_entrypoint_utils.to_runtime_artifact(artifact, {})
    message.type.schema_title = title
    received = pipeline_spec_pb2.ArtifactList(artifacts=[message])
    parsed = kubeflow_v2_entrypoint_utils.parse_raw_artifact_dict({"artifact": received}, {})
    return parsed["artifact"]


def test_numbers_that_kubeflow_made_floats(artifacts, tmp_path):
    inputs = inputs_at(artifacts, span=20_408)
    for name, title in (("blessing", "tfx.ModelBlessing"), ("examples", "tfx.Examples")):
        inputs[name] = as_in_kubeflow(inputs[name][0], title)
    assert inputs["examples"][0].get_custom_property("span") == 20_408.0
    run(inputs, tmp_path, tmp_path / "releases")
    span = Release.load(find_release(tmp_path / "releases")).manifest.span
    assert (span, type(span)) == (20_408, int)


@pytest.mark.usefixtures("memory_store")
def test_a_release_goes_to_a_bucket(artifacts, tmp_path):
    bucket = "ram://bucket"
    artifact = run(inputs_at(artifacts, span=5), tmp_path, f"{bucket}/releases")
    version = artifact.get_int_custom_property("version")
    assert artifact.get_int_custom_property("pushed") == 1
    assert json.loads((tmp_path / "release/release.json").read_text()) == {
        "version": version,
        "path": f"{bucket}/releases/{version}",
    }
    fetched = fetch(f"{bucket}/releases", tmp_path / "releases")
    assert Release.load(fetched).manifest.span == 5
    assert Release.load(fetched).version == version
    assert sorted(os.listdir(tmp_path)) == ["release", "releases", "root"]


@pytest.mark.usefixtures("memory_store")
def test_the_pointer_follows_the_manifest_at_once(artifacts, tmp_path, monkeypatch):
    """Before the pointer, an index-only run takes the earlier model for the newest."""
    written = []
    write = storage._write

    def remember(path, blocks):
        written.append(str(path))
        write(path, blocks)

    monkeypatch.setattr(storage, "_write", remember)
    releases = "ram://bucket/releases"
    version = run(inputs_at(artifacts), tmp_path, releases).get_int_custom_property("version")
    towers = [path for path in written if "/models/" in path]
    files = [path for path in written if path.startswith(releases)]
    pointer = f"{tmp_path}/root/pointers/{CONFIG.pipeline.name}/blessed/{version}.json"
    assert files[-1] == f"{releases}/{version}/manifest.json"
    assert len(towers) == len(content_of(artifacts / "model/Format-Serving"))
    assert written == [*towers, *files, pointer]


def pointers_at(folder):
    return Pointers(f"{folder}/root/pointers/{CONFIG.pipeline.name}", f"{folder}/releases")


@pytest.fixture
def index_only(artifacts, tmp_path):
    """The inputs of an index-only run, which took the model of the release that is there."""
    push(artifacts, tmp_path)
    model = tmp_path / "taken"
    shutil.copytree(artifacts / "model", model)
    taken = pointers_at(tmp_path).newest_model()
    (model / BlessedModel.FILE).write_text(taken.to_json())
    return {**inputs_at(artifacts), "model": [artifact_at(Model, model)]}


def test_an_index_only_push_records_the_same_model(index_only, tmp_path):
    before = pointers_at(tmp_path).newest_model()
    # Its examples have no span.
    assert Release.load(find_release(tmp_path / "releases")).manifest.span is None
    artifact = run(index_only, tmp_path, tmp_path / "releases")
    assert artifact.get_int_custom_property("version") > before.model
    assert Release.load(find_release(tmp_path / "releases")).manifest.model == before.model
    assert pointers_at(tmp_path).newest_model() == before
    roll_back(tmp_path / "releases")
    assert pointers_at(tmp_path).newest_model() == before


def test_a_model_that_was_superseded_or_withdrawn_meanwhile_is_not_pushed(
    index_only, artifacts, tmp_path, monkeypatch
):
    """Before the push, and while it is under way: the release is tested, and then rejected."""
    releases = tmp_path / "releases"
    taken = pointers_at(tmp_path).newest_model()
    record = SelfTest.record

    def meanwhile(action):
        def act(*arguments):
            action()
            return record(*arguments)

        monkeypatch.setattr(SelfTest, "record", act)

    def rejected():
        before = versions(releases)
        with pytest.raises(UserError) as caught:
            run(index_only, tmp_path, releases)
        monkeypatch.undo()
        assert versions(releases) == before
        assert not list(releases.glob(".staging*"))
        return str(caught.value)

    start = (
        "an index-only run must push the newest blessed model that is not withdrawn: run it again. "
        f"Received: that of release {taken.model}, where "
    )
    newer = taken.model + 10
    (releases / str(newer)).mkdir()
    superseded = f"{start}release {newer} has the newest."
    pointers = pointers_at(tmp_path)
    meanwhile(lambda: pointers.record(newer, BlessedModel(newer, "of tuesday", "")))
    assert rejected() == superseded
    assert rejected() == superseded
    withdraw(releases, newer)
    (releases / str(newer + 1)).mkdir()
    meanwhile(lambda: withdraw(releases, taken.model))
    assert rejected() == f"{start}none is left."


def test_a_model_that_does_not_load_is_rejected(artifacts, tmp_path):
    damaged = shutil.copytree(artifacts, tmp_path / "artifacts")
    (damaged / "cutoff/query_model/saved_model.pb").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"^a release must load and answer before it is pushed\. R"):
        push(damaged, tmp_path)
    assert os.listdir(tmp_path / "releases") == []
    assert not (tmp_path / "release").exists()

"""LastBlessedModel: what it writes, what its driver makes the cache key of, and its error."""

import pytest
from tfx.orchestration.portable.data_types import ExecutionInfo
from tfx.types import Channel
from tfx.types.standard_artifacts import Examples, Model
from withdrawals import withdraw

from components.last_blessed_model import LastBlessedModel
from components.last_blessed_model.driver import LastBlessedModelDriver
from components.last_blessed_model.executor import (
    LastBlessedModelExecutor,
    examples_identity,
    reading_of,
)
from pebr_tf import storage
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.release.pointers import BlessedModel, Pointers

pytestmark = pytest.mark.slow

WEIGHTS, GRAPH = "variables/variables.index", "saved_model.pb"


@pytest.fixture(params=["local", "remote"])
def config(request, tmp_path, memory_store):
    root = str(tmp_path) if request.param == "local" else "ram://bucket"
    for version in (5, 6, 7):
        storage.write_bytes(f"{root}/releases/{version}/manifest.json", b"")
        storage.write_bytes(f"{root}/releases/{version}/query_model/file", b"")
    return Config().replace_all(
        {"pipeline.root": f"{root}/run", "pipeline.releases": f"{root}/releases"}
    )


def examples_of(fingerprint):
    artifact = Examples()
    artifact.set_string_custom_property("input_fingerprint", fingerprint)
    return artifact


def push(config, tmp_path, version, fingerprint):
    storage.write_bytes(tmp_path / f"towers/{version}" / WEIGHTS, f"of {version}".encode())
    storage.write_bytes(tmp_path / f"towers/{version}" / GRAPH, b"graph")
    identity = examples_identity(examples_of(fingerprint), reading_of(config))
    pointers = Pointers(Pointers.folder_of(config), config.pipeline.releases)
    towers = pointers.keep_towers(str(tmp_path / f"towers/{version}"))
    pointers.record(version, BlessedModel(version, identity, towers))


class Run:
    def __init__(self, config, fingerprint=None):
        channel = None if fingerprint is None else Channel(type=Examples)
        self.properties = dict(LastBlessedModel(config, channel).exec_properties)
        self.inputs = {} if fingerprint is None else {"examples": [examples_of(fingerprint)]}

    def drive(self):
        """The exec properties as the launcher passes them on."""
        info = ExecutionInfo(input_dict=self.inputs, exec_properties=self.properties)
        found = LastBlessedModelDriver(None).run(info).exec_properties
        return {**self.properties, **{name: value.string_value for name, value in found.items()}}

    def execute(self, folder, driven=True):
        """The output of the executor; in a container there is no driver."""
        model = Model()
        model.uri = str(folder)
        properties = self.drive() if driven else self.properties
        LastBlessedModelExecutor().Do(self.inputs, {"model": [model]}, properties)
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("driven", [True, False])
def test_the_newest_model_of_other_examples_is_copied(config, tmp_path, driven):
    assert Run(config, "monday").execute(tmp_path / "a", driven) == {"no_model.txt"}
    push(config, tmp_path, 5, "monday")
    push(config, tmp_path, 6, "tuesday")
    for number, (fingerprint, version) in enumerate({"tuesday": 5, "monday": 6, None: 6}.items()):
        folder = tmp_path / f"output{number}"
        names = Run(config, fingerprint).execute(folder, driven)
        assert names == {
            "blessed_model.json",
            *(f"Format-Serving/{name}" for name in (WEIGHTS, GRAPH)),
        }
        assert (folder / "Format-Serving" / WEIGHTS).read_text() == f"of {version}"
        assert BlessedModel.find(str(folder)).model == version
    # A model that was trained on the same clicks, read in another way, is another one.
    other = Run(config.replace("split.seed", 9), "tuesday")
    other.execute(tmp_path / "other", driven)
    assert BlessedModel.find(str(tmp_path / "other")).model == 6


def test_the_cache_key_follows_the_choice(config, tmp_path):
    run, index_only = Run(config, "monday"), Run(config)
    none = run.drive()
    push(config, tmp_path, 5, "monday")
    assert run.drive() == none, "a second run on the same clicks takes nothing new"
    first = index_only.drive()
    pointers = Pointers(Pointers.folder_of(config), config.pipeline.releases)
    pointers.record(6, pointers.newest_model())
    assert index_only.drive() == first, "its own push is not a new model"
    push(config, tmp_path, 7, "tuesday")
    assert run.drive() not in (none, first)
    assert index_only.drive() != first
    withdraw(config.pipeline.releases, 7)
    assert run.drive() == none
    assert index_only.drive() == first


@pytest.mark.parametrize("left", [(), (WEIGHTS,)])
def test_a_pointer_without_its_towers(config, tmp_path, left):
    for name in left:
        storage.write_bytes(tmp_path / "part" / name, b"")
    pointers = Pointers(Pointers.folder_of(config), config.pipeline.releases)
    blessed = BlessedModel(5, "monday", pointers.keep_towers(str(tmp_path / "part")))
    pointers.record(5, blessed)
    with pytest.raises(UserError) as caught:
        Run(config).execute(tmp_path / "output")
    assert str(caught.value) == (
        f"{pointers.towers(blessed)} must hold the towers of release 5, unless the release is "
        "withdrawn. Received: no saved_model.pb."
    )
    assert not (tmp_path / "output").exists()


def test_another_pipeline_sees_none_of_it(config, tmp_path):
    push(config, tmp_path, 5, "monday")
    other = config.replace("pipeline.name", "other")
    assert Run(other, "tuesday").execute(tmp_path / "other") == {"no_model.txt"}


@pytest.mark.parametrize("driven", [True, False])
def test_an_index_only_run_needs_a_model(config, tmp_path, driven):
    with pytest.raises(UserError) as caught:
        Run(config).execute(tmp_path / "output", driven)
    assert str(caught.value) == (
        "an index-only run must find a blessed model: run the whole pipeline first. Received: none."
    )
    assert not (tmp_path / "output").exists()

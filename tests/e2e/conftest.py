"""One run of the tiny world, shared by all tests of this folder, and copies to work on."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_metadata
import pytest
from ml_metadata.proto import metadata_store_pb2
from pebr_process import FinishedPebr
from tiny_world import write_world

PEBR = str(Path(sys.executable).parent / "pebr")
RUN = ("run", "--config", "pebr.yaml")
COMPONENTS = [
    *("ClickLogExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator"),
    *(
        "LastBlessedModel",
        "Transform",
        "Trainer",
        "IndexBuilder",
        "CutoffCalibrator",
        "RetrievalEvaluator",
        "Pusher",
    ),
]
# It reads and writes a pointer and is therefore never cached.
ALWAYS = "ExampleValidator"
CLOUD = {
    "cloud.project": "shop-search",
    "cloud.region": "europe-west4",
    "cloud.image": "pebr:1",
    "training.warm_start": True,
}


@dataclass(frozen=True)
class WorldFolder:
    folder: Path

    @property
    def releases(self):
        return sorted((self.folder / "releases").glob("[0-9]*"))

    def files(self, folder):
        """The names of all files under a folder of this world."""
        root = self.folder / folder
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}

    def finished_artifacts(self):
        """The folder of each artifact that is finished by the metadata, and the files in it."""
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = str(self.folder / "run/metadata.sqlite")
        artifacts = ml_metadata.MetadataStore(config).get_artifacts()
        live = metadata_store_pb2.Artifact.State.LIVE
        return {each.uri: self.files(each.uri) for each in artifacts if each.state == live}

    def edit_config(self, old, new):
        path = self.folder / "pebr.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


@dataclass(frozen=True)
class BaseRun(WorldFolder):
    """The first run, which all other runs start from."""

    finished: FinishedPebr


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """`pebr run` on the tiny world, by the installed command; read-only."""
    folder = tmp_path_factory.mktemp("tiny_world")
    write_world(folder)
    done = subprocess.run(
        [PEBR, *RUN], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )
    return BaseRun(folder, FinishedPebr(done.returncode, done.stdout, done.stderr))


@dataclass(frozen=True)
class CloudRuns(WorldFolder):
    """The `whole` pipeline, and `index`, an index-only run, as compiled jobs, run task by task.

    The index-only job takes its data from the cache and ends after the index.
    """

    jobs: dict[str, Any]
    outputs: dict[str, Any]
    log: dict[str, str]


@pytest.fixture(scope="session")
def cloud_runs(tmp_path_factory):
    """Both jobs of the tiny world, on local paths; read-only."""
    from containers import Vertex

    from pebr_tf.config import Config
    from pipeline.kubeflow_v2_runner import compile_job

    folder = tmp_path_factory.mktemp("cloud_world")
    write_world(folder)
    config = Config.load(folder / "pebr.yaml").replace_all(CLOUD)
    vertex = Vertex(folder)
    jobs = {name: compile_job(config, index_only=name == "index") for name in ("whole", "index")}
    outputs = {"whole": vertex.run(jobs["whole"], "whole")}
    cached = {
        name: outputs["whole"][name]
        for name in ("ClickLogExampleGen", "StatisticsGen", "SchemaGen")
    }
    outputs["index"] = vertex.run(jobs["index"], "index", cached, until="IndexBuilder")
    return CloudRuns(folder, jobs, outputs, vertex.log)


@pytest.fixture
def world(base, tmp_path):
    """A copy of the first run. Its metadata holds paths relative to the working directory."""
    assert base.finished.code == 0, base.finished.err
    shutil.copytree(base.folder, tmp_path / "world")
    return WorldFolder(tmp_path / "world")

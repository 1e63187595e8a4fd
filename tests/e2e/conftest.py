"""One run of the tiny world, shared by all tests of this folder, and copies to work on."""

import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pebr_process import FinishedPebr
from tiny_world import CLOUD, PEBR, RUN, WORDS, WorldFolder, write_world

sys.path.append(str(Path(__file__).parents[1] / "pebr_tf" / "models"))

from bert_folders import write_folder


@dataclass(frozen=True)
class BaseRun(WorldFolder):
    """The first run, which all other runs start from."""

    finished: FinishedPebr


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """`pebr run` on the tiny world, by the installed command; read-only."""
    folder = tmp_path_factory.mktemp("tiny_world")
    write_world(folder)
    return BaseRun(folder, installed_run(folder))


def installed_run(folder):
    """`pebr run` in a process of its own: a forked one has the environment of the first of all."""
    done = subprocess.run([PEBR, *RUN], cwd=folder, capture_output=True, encoding="utf-8")
    return FinishedPebr(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def on_encoder(tmp_path_factory):
    """The same on a pretrained encoder that is frozen, of random weights; read-only."""
    folder = tmp_path_factory.mktemp("on_encoder")
    write_world(folder)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *map("##{}".format, "abcdefgh")]
    write_folder(folder / "bert", vocabulary=vocabulary)
    world = BaseRun(folder, FinishedPebr(0, "", ""))
    world.edit_config("towers: {", "towers: {kind: bert, backbone: bert, max_length: 16, ")
    return replace(world, finished=installed_run(folder))


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


@pytest.fixture(scope="session")
def environment_with(tmp_path_factory):
    """Makes an environment with packages from the registry; returns its folder."""
    uv = shutil.which("uv") or shutil.which("uv", path=Path(__file__).parents[2] / ".setup/bin")
    if uv is None:
        pytest.skip("uv must be installed")

    def make(*arguments):
        folder = tmp_path_factory.mktemp("environment") / "venv"
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], check=True)
        command = [uv, "pip", "install", "-q", "--python", folder / "bin/python", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"uv cannot install {arguments}: {done.stderr.strip()[-300:]}")
        return folder

    return make


@pytest.fixture
def world(base, tmp_path):
    """A copy of the first run. Its metadata holds paths relative to the working directory."""
    assert base.finished.code == 0, base.finished.err
    shutil.copytree(base.folder, tmp_path / "world")
    return WorldFolder(tmp_path / "world")

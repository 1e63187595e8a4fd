"""Pusher's executor on artifacts in a folder: what is on disk after it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tfx.types import channel_utils
from tfx.types.standard_artifacts import Examples, ModelBlessing

from components.artifacts import CutoffModel, Release, RetrievalEvaluation, RetrievalIndex
from components.pusher import Pusher
from components.pusher.executor import Executor
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from serving.moments import Moments
from serving.release import latest_release, read_release, versions

FILES = {
    "cutoff/cutoff.json": "{}",
    "cutoff/query_model/saved_model.pb": "model",
    "index/index/index.json": "{}",
    "index/payload.parquet": "payload",
    "index/vectors.npy": "not for a release",
    "evaluation/evaluation.json": "{}",
    "evaluation/report.html": "<p>report</p>",
}
CONFIG = Config().replace("cutoff.cap", 777)
MOMENTS = Moments(np.zeros(3), np.eye(3))


def artifact_at(kind, folder):
    artifact = kind()
    artifact.uri = str(folder)
    return artifact


def push(folder, blessed=1, span=0, made_for=MOMENTS):
    """Runs the executor on artifacts below `folder`; the release artifact."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    np.savez(folder / "index/moments.npz", mean=MOMENTS.mean, covariance=MOMENTS.covariance)
    facts = folder / "cutoff/query_model/assets.extra/query_model.json"
    facts.parent.mkdir(exist_ok=True)
    facts.write_text(json.dumps({"moments": made_for.fingerprint()}))
    kinds = {
        "cutoff": CutoffModel,
        "index": RetrievalIndex,
        "evaluation": RetrievalEvaluation,
        "blessing": ModelBlessing,
        "examples": Examples,
    }
    inputs = {name: [artifact_at(kind, folder / name)] for name, kind in kinds.items()}
    inputs["blessing"][0].set_int_custom_property("blessed", blessed)
    inputs["examples"][0].span = span
    release = artifact_at(Release, folder / "release")
    properties = {"config": CONFIG.to_yaml(comments=False), "releases": str(folder / "releases")}
    Executor().Do(inputs, {"release": [release]}, properties)
    return release


def test_a_blessed_model_becomes_a_release(tmp_path):
    artifact = push(tmp_path, span=5)
    release = read_release(latest_release(tmp_path / "releases"))
    assert release.manifest.span == 5
    assert release.config() == CONFIG
    assert not release.path("vectors.npy").exists()
    assert artifact.get_int_custom_property("pushed") == 1
    assert artifact.get_int_custom_property("version") == release.version
    assert json.loads((tmp_path / "release/release.json").read_text()) == {
        "version": release.version,
        "path": str(release.directory),
    }


def test_what_is_not_blessed_is_not_pushed(tmp_path):
    artifact = push(tmp_path, blessed=0)
    assert artifact.get_int_custom_property("pushed") == 0
    assert not artifact.has_custom_property("version")
    assert not (tmp_path / "releases").exists()
    content = json.loads((tmp_path / "release/release.json").read_text())
    assert content == {"version": None, "path": None}


def test_examples_without_a_span_give_none(tmp_path):
    push(tmp_path)
    assert read_release(latest_release(tmp_path / "releases")).manifest.span is None


def test_a_query_model_of_another_index_is_refused(tmp_path):
    with pytest.raises(UserError, match="query_model must be made for the index beside it"):
        push(tmp_path, made_for=Moments(np.ones(3), np.eye(3)))
    assert versions(tmp_path / "releases") == []


@pytest.mark.slow
def test_killed_in_the_middle_and_run_again(tmp_path):
    program = (
        "import os, shutil, signal, sys\n"
        "from pathlib import Path\n"
        "import test_pusher\n"
        "copyfile, copied = shutil.copyfile, []\n"
        "def copy(source, target, **keywords):\n"
        "    copied.append(copyfile(source, target, **keywords))\n"
        "    if len(copied) == 4:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "shutil.copyfile = copy\n"
        "test_pusher.push(Path(sys.argv[1]))\n"
    )
    here = Path(__file__)
    paths = os.pathsep.join([str(here.parent), str(here.parents[3])])
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(os.listdir(tmp_path / "releases")) == 1
    assert versions(tmp_path / "releases") == []
    assert not (tmp_path / "release/release.json").exists()
    push(tmp_path)
    (version,) = os.listdir(tmp_path / "releases")
    assert read_release(tmp_path / "releases" / version).version == int(version)


def test_the_component_carries_its_settings():
    kinds = {
        "cutoff": CutoffModel,
        "index": RetrievalIndex,
        "evaluation": RetrievalEvaluation,
        "blessing": ModelBlessing,
        "examples": Examples,
    }
    channels = {name: channel_utils.as_channel([kind()]) for name, kind in kinds.items()}
    pusher = Pusher(**channels, config=CONFIG, source="abc")
    assert Config.from_yaml(pusher.exec_properties["config"]) == CONFIG
    assert pusher.exec_properties["releases"] == "releases"
    assert pusher.exec_properties["source"] == "abc"
    assert pusher.outputs["release"].type is Release
    elsewhere = Pusher(**channels, config=CONFIG, releases="elsewhere")
    assert elsewhere.exec_properties["releases"] == "elsewhere"

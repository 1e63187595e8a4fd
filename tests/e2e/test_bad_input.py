"""User errors at the level of the command: one sentence, exit code 2, no partial results.

The tests of ClickLogExampleGen hold every case of bad input; here one stands for all.
"""

import errno
import os

import pyarrow as pa
import pytest
from conftest import RUN, SOURCES, World
from pebr_process import edited, failing_at, pebr
from pyarrow import parquet
from tiny_world import write_world

pytestmark = pytest.mark.slow


def sentence(done):
    """The only line of a run that ended with a user error."""
    assert done.code == 2, done.err
    (line,) = done.err.splitlines()
    assert line.startswith("pebr: ")
    assert "Received" in line
    return line.removeprefix("pebr: ")


def artifact_files(world):
    """Files of artifacts, without the dead letters, which the user needs."""
    files = (path for path in (world.folder / "run/artifacts").rglob("*") if path.is_file())
    return {path for path in files if ".rejected" not in str(path)}


def test_a_wrong_config_and_an_unusable_click_log(tmp_path):
    write_world(tmp_path / "world")
    world = World(tmp_path / "world")
    world.edit_config("steps: 100", "steps: many")
    done = pebr(world.folder, *RUN)
    assert "pebr.yaml: training.steps must be" in sentence(done)
    assert not (world.folder / "run").exists()

    world.edit_config("steps: many", "steps: 100")
    world.edit_config("data/clicks.tsv", "data/clicks.parquet")
    table = pa.table({"query": [[1], [2]], "item_id": [b"e1", b"e2"]})
    parquet.write_table(table, world.folder / "data/clicks.parquet")
    done = pebr(world.folder, *RUN)
    assert "Bad rows of the click log must" in sentence(done)
    assert done.states() == {}
    assert artifact_files(world) == set()
    assert not (world.folder / "releases").exists()


def test_a_full_disk(world):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/file")
    before, releases = artifact_files(world), world.releases
    hooks = [edited(SOURCES["Pusher"]), failing_at("pebr_tf.release.release", "_publish", full)]
    done = pebr(world.folder, *RUN, hooks=hooks)
    assert sentence(done) == "run/file must have space. Received: No space left on device."
    # The validator, which always runs, has accepted the data again.
    new = artifact_files(world) - before
    assert {path for path in new if "ExampleValidator" not in str(path)} == set()
    assert world.releases == releases
    assert not list((world.folder / "releases").glob(".*"))

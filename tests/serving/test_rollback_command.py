"""`pebr rollback`: what it changes, and the table that it prints."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from unittest.mock import Mock

import pytest
from pebr_command import invoke
from pebr_command import run as run_pebr

from pebr_tf import storage
from pebr_tf.errors import UserError
from pebr_tf.release.release import Release, find_release, write_release
from pebr_tf.release.remote import upload
from pebr_tf.release.versions import newest_served, served, withdrawn
from serving.cli.rollback import rollback


@pytest.fixture(scope="module")
def three(tmp_path_factory, parts):
    """A folder of three releases; the middle one is damaged."""
    folder = tmp_path_factory.mktemp("three") / "releases"
    found = [write_release(folder, parts) for _ in range(3)]
    (found[1].directory / "manifest.json").write_text("{")
    return folder


@pytest.fixture
def releases(tmp_path, three):
    return shutil.copytree(three, tmp_path / "releases", symlinks=True)


def run(releases, *arguments):
    """The rows of the table, newest first: version, pushed, knob, model, state."""
    head, *rows = invoke(rollback, "--releases", releases, *arguments).stdout.splitlines()
    columns = ["version", "pushed", "default knob", "model", "state"]
    assert re.split(r"\s{2,}", head.strip()) == columns
    return [re.split(r"\s{2,}", row.strip()) for row in rows]


def rejected(capsys, releases, *arguments):
    """The line that `pebr` prints before it exits with 2."""
    assert run_pebr("rollback", "--releases", releases, *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_the_newest_is_withdrawn_and_served_again(releases):
    old, middle, new = served(releases)
    rows = run(releases, "--list")
    assert [row[0] for row in rows] == [str(new), str(middle), str(old)]
    assert rows[0][2:] == ["recall 0.9", str(new), "serving"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", rows[0][1])
    assert rows[1][1:] == ["damaged", "kept"]
    assert rows[2][3:] == [str(old), "kept"]

    rows = run(releases, "--reason", "bad [bold]titles")
    assert re.fullmatch(r"withdrawn \d{4}-.{20}: bad \[bold\]titles", rows[0][-1])
    assert rows[1][-1] == "serving"
    assert find_release(releases).name == str(middle)
    rows = run(releases, "--undo", new)
    assert [row[-1] for row in rows] == ["serving", "kept", "kept"]

    rows = run(releases, "--to", old)
    assert [row[-1].split()[0] for row in rows] == ["withdrawn", "withdrawn", "serving"]
    assert re.fullmatch(r"withdrawn \S{25}", rows[0][-1])
    assert run(releases, "--to", old) == rows


@pytest.mark.parametrize("last", ["old", "new"])
def test_a_model_that_is_still_served_is_told(tmp_path, parts, last):
    """Index-only runs push a model again; releases of an older version do not state their model."""
    other, old = (write_release(tmp_path, parts).version for _ in range(2))
    again = write_release(tmp_path, replace(parts, model=old)).version
    third = write_release(tmp_path, replace(parts, model=old) if last == "old" else parts).version
    assert [row[3] for row in run(tmp_path, "--list")] == [
        str(old if last == "old" else third),
        *(str(old), str(old), str(other)),
    ]
    warning = (
        "pebr: version {} has the same model, which index-only runs push again. To withdraw the "
        "model, name the last version of another one with --to.\n"
    )
    told = invoke(rollback, "--releases", tmp_path).stderr
    assert told == (warning.format(again) if last == "old" else "")
    assert invoke(rollback, "--releases", tmp_path).stderr == warning.format(old)
    assert invoke(rollback, "--releases", tmp_path, "--to", other).stderr == ""
    assert invoke(rollback, "--releases", tmp_path, "--undo", third).stderr == ""
    manifest = tmp_path / str(other) / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["model"], content["digest"]
    manifest.write_text(json.dumps(content))
    rows = run(tmp_path, "--list")
    assert rows[-1][2:] == ["recall 0.9", "kept"]
    assert Release.load(manifest.parent).manifest.model is None


@pytest.mark.usefixtures("memory_store")
def test_a_bucket_is_rolled_back_too(parts, tmp_path):
    """Versions that a push has begun, and not ended, are not what is served."""
    remote = "ram://bucket/releases"
    old, new = (upload(remote, write_release(tmp_path, parts)).version for _ in range(2))
    storage.write_bytes(f"{remote}/{new + 5}/.claim-1", b"")
    rows = run(remote, "--list")
    assert [row[-1] for row in rows] == ["kept", "serving", "kept"]
    assert rows[0][1] == "damaged"
    assert rows[1][2] == "recall 0.9"
    rows = run(remote, "--reason", "titles")
    assert [row[-1].split()[0] for row in rows] == ["kept", "withdrawn", "serving"]
    assert list(withdrawn(remote)) == [new]
    assert newest_served(remote) == old
    with pytest.raises(UserError, match=rf"must keep a version to serve\. Received: {old}, and no"):
        run(remote)
    assert run(f"{remote}/", "--undo", new)[1][-1] == "serving"


def test_mistakes_exit_with_2_and_one_sentence(releases, tmp_path, capsys):
    """The library's own sentences are tested with it; one of them goes through the command."""
    _, _, new = served(releases)
    assert rejected(capsys, releases, "--undo", new) == (
        f"pebr: version must be one that is withdrawn. Received: {new}.\n"
    )
    assert rejected(capsys, releases, "--undo", new, "--to", new) == (
        "pebr: --undo must stand alone. Received: --to, --undo.\n"
    )
    assert rejected(capsys, releases, "--list", "--reason", "none") == (
        "pebr: --list must stand alone. Received: --reason, --list.\n"
    )
    sentence = f"pebr: {tmp_path / 'nowhere'} must be a folder of releases.\n"
    assert rejected(capsys, tmp_path / "nowhere", "--list") == sentence


def test_a_folder_that_cannot_be_written_is_named(releases, capsys, monkeypatch):
    failing = Mock(side_effect=OSError(30, "Read-only file system"))
    monkeypatch.setattr("pebr_tf.release.versions._write", failing)
    assert rejected(capsys, releases) == (
        f"pebr: {releases} must be writable. Received: [Errno 30] Read-only file system.\n"
    )


def test_it_needs_no_tensorflow(releases):
    command = ["-m", "pebr_tf.cli.main", "rollback", "--releases", releases]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True
    )
    assert "pebr_tf.release.versions" in done.stderr
    assert "tensorflow" not in done.stderr
    assert len(withdrawn(releases)) == 1

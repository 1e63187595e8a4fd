"""Releases: what is in one, what is refused, and that a push is seen whole or not at all."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from serving.moments import Moments
from serving.release import (
    Parts,
    find_release,
    latest_release,
    read_release,
    versions,
    write_release,
)
from serving.staging import STAGING

# Opens nothing: what is inside a model or an index is no matter of the release.
FILES = {
    "cutoff/cutoff.json": "{}",
    "cutoff/query_model/saved_model.pb": "model",
    "cutoff/query_model/variables/variables.index": "weights",
    "index/index/index.json": "{}",
    "index/payload.parquet": "payload",
    "index/vectors.npy": "not for a release",
    "evaluation/evaluation.json": "{}",
    "evaluation/report.html": "<p>report</p>",
}


def write_parts(folder, seed=0):
    """Parts of a release whose model and index belong together."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    moments = Moments(np.full(3, float(seed)), np.eye(3))
    np.savez(folder / "index/moments.npz", mean=moments.mean, covariance=moments.covariance)
    facts = folder / "cutoff/query_model/assets.extra/query_model.json"
    facts.parent.mkdir()
    facts.write_text(json.dumps({"moments": moments.fingerprint()}))
    return Parts(*(folder / name for name in ("cutoff", "index", "evaluation")), Config(), span=7)


@pytest.fixture
def parts(tmp_path):
    return write_parts(tmp_path / "parts")


@pytest.fixture
def release(tmp_path, parts):
    return write_release(tmp_path / "releases", parts)


def edit(release, **changes):
    """Rewrites keys of the manifest, which then vouches for itself no more."""
    path = release.path("manifest.json")
    content = json.loads(path.read_text())
    content.pop("digest", None)
    path.write_text(json.dumps({**content, **changes}))


def test_a_release_holds_what_answers_queries_and_its_manifest(release, parts):
    before = int(datetime.now(timezone.utc).strftime("%Y%m%d%H%M%S"))
    assert before - 200 < release.version <= before
    assert release.directory.name == str(release.version)
    files = {
        path.relative_to(release.directory).as_posix(): path.read_bytes()
        for path in release.directory.rglob("*")
        if path.is_file()
    }
    manifest = json.loads(files.pop("manifest.json"))
    assert set(files) == {
        *("query_model/saved_model.pb", "query_model/variables/variables.index"),
        *("query_model/assets.extra/query_model.json", "index/index.json"),
        *("payload.parquet", "moments.npz", "cutoff.json", "config.yaml"),
        *("evaluation.json", "report.html"),
    }
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert manifest["files"] == digests
    assert manifest["format"] == 1
    assert manifest["version"] == release.version
    assert manifest["span"] == 7
    assert manifest["config"] == Config().fingerprint()
    assert {"pebr-tf", "tensorflow", "scann"} <= set(manifest["packages"])
    assert datetime.fromisoformat(manifest["created"]).utcoffset().total_seconds() == 0
    again = read_release(release.directory)
    assert again == release
    assert again.config() == parts.config


def test_versions_grow_whatever_the_clock_says(tmp_path, parts):
    future = tmp_path / "releases" / "99990101000000"
    future.mkdir(parents=True)
    (tmp_path / "releases" / "notes").mkdir()
    (tmp_path / "releases" / "0012").mkdir()
    assert write_release(tmp_path / "releases", parts).version == 99990101000001
    assert versions(tmp_path / "releases") == [99990101000000, 99990101000001]
    assert latest_release(tmp_path / "releases").name == "99990101000001"
    assert find_release(tmp_path / "releases").name == "99990101000001"


def test_pushes_at_once_get_versions_of_their_own(tmp_path, parts):
    with ThreadPoolExecutor(6) as pool:
        pushed = list(pool.map(lambda _: write_release(tmp_path / "releases", parts), range(6)))
    assert sorted(each.version for each in pushed) == versions(tmp_path / "releases")
    assert len(versions(tmp_path / "releases")) == 6
    for each in pushed:
        assert read_release(each.directory).version == each.version
    assert not list((tmp_path / "releases").glob(f"{STAGING}*"))


def test_a_version_that_was_taken_in_the_meantime_is_passed_over(tmp_path, parts, monkeypatch):
    (tmp_path / "releases" / "99990101000000").mkdir(parents=True)

    def stale(releases):
        monkeypatch.setattr("serving.release.versions", versions)
        seen = versions(releases)
        assert write_release(releases, parts).version == 99990101000001
        return seen

    monkeypatch.setattr("serving.release.versions", stale)
    late = write_release(tmp_path / "releases", parts)
    assert late.version == read_release(late.directory).version == 99990101000002
    assert read_release(tmp_path / "releases/99990101000001").version == 99990101000001


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["copyfile", "rename"])
def test_a_killed_push_is_never_seen_and_the_next_one_clears_it_away(tmp_path, parts, moment):
    program = f"""
        import os, shutil, signal, sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import test_release

        def die(*arguments, **keywords):
            os.kill(os.getpid(), signal.SIGKILL)

        setattr({{"copyfile": shutil, "rename": Path}}["{moment}"], "{moment}", die)
        parts = test_release.Parts(*map(Path, sys.argv[2:]), test_release.Config())
        test_release.write_release(Path(sys.argv[1]), parts)
    """
    folders = [parts.cutoff, parts.index, parts.evaluation]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), tmp_path / "releases", *folders],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == -9, done.stderr
    assert len(list((tmp_path / "releases").iterdir())) == 1
    assert latest_release(tmp_path / "releases") is None
    with pytest.raises(UserError, match=r"must be a release or a folder of releases\."):
        find_release(tmp_path / "releases")
    release = write_release(tmp_path / "releases", parts)
    assert sorted(os.listdir(tmp_path / "releases")) == [str(release.version), "query_model"]
    read_release(release.directory)


def test_a_failed_push_leaves_nothing(tmp_path, parts, monkeypatch):
    def full(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    sentence = f"{tmp_path}/releases must have space. Received: No space left on device."
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        write_release(tmp_path / "releases", parts)
    assert list((tmp_path / "releases").iterdir()) == []


@pytest.mark.parametrize("name", ["cutoff/query_model", "index/payload.parquet"])
def test_a_push_needs_all_parts(tmp_path, parts, name):
    path = tmp_path / "parts" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(UserError, match=f"{name} is missing: a release needs it"):
        write_release(tmp_path / "releases", parts)
    assert not (tmp_path / "releases").exists()


def test_a_model_that_does_not_belong_to_its_index_is_refused(tmp_path, parts, release):
    other = write_parts(tmp_path / "other", seed=1)
    mixed = Parts(other.cutoff, parts.index, parts.evaluation, parts.config)
    with pytest.raises(UserError, match="query_model must be made for the index beside it"):
        write_release(tmp_path / "releases", mixed)
    # Also with a manifest that vouches for every file.
    name = "query_model/assets.extra/query_model.json"
    shutil.copyfile(other.cutoff / name, release.path(name))
    digest = hashlib.sha256(release.path(name).read_bytes()).hexdigest()
    edit(release, files={**release.manifest.files, name: digest})
    with pytest.raises(UserError, match="query_model must be made for the index beside it"):
        read_release(release.directory)
    edit(release, files=release.manifest.files, identity="0" * 64)
    shutil.copyfile(parts.cutoff / name, release.path(name))
    with pytest.raises(UserError, match=r"must hold the model and index of its manifest"):
        read_release(release.directory)


def test_a_missing_or_changed_or_added_file_is_refused(release):
    path = release.path("query_model/saved_model.pb")
    path.write_text("modem")
    with pytest.raises(UserError, match=rf"{path} must have SHA-256 [0-9a-f]{{12}}"):
        read_release(release.directory)
    assert read_release(release.directory, verify=False) == release
    path.unlink()
    with pytest.raises(UserError, match=f"{path} is missing from the release"):
        read_release(release.directory)
    path.write_text("model")
    added = release.path("query_model/saved_model.cpb")
    added.write_text("another model")
    with pytest.raises(UserError, match=rf"{added} must be listed in manifest\.json or be remov"):
        read_release(release.directory)
    added.rename(release.path(".DS_Store"))
    read_release(release.directory)
    release.path("report.html").unlink()
    with pytest.raises(UserError, match=r"report\.html is missing from the release"):
        read_release(release.directory, verify=False)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "query_model/../../x", "a//b"])
def test_a_manifest_cannot_lead_out_of_the_release(release, name):
    edit(release, files={**release.manifest.files, name: "0" * 64})
    with pytest.raises(
        UserError, match=f"must list files inside the release. Received: '{re.escape(name)}'"
    ):
        read_release(release.directory)


def test_what_is_no_release_is_refused(tmp_path, release):
    with pytest.raises(UserError, match=r"nowhere must be a release with manifest\.json"):
        read_release(tmp_path / "nowhere")
    with pytest.raises(UserError, match="must be a release or a folder of releases"):
        find_release(tmp_path / "nowhere")
    edit(release, format=2)
    with pytest.raises(UserError, match=r"must have format 1\. Received: 2"):
        read_release(release.directory)
    edit(release, format=1, surprise=True)
    with pytest.raises(UserError, match=r"must have the keys of a manifest.*surprise"):
        read_release(release.directory)
    release.path("manifest.json").write_text("[")
    with pytest.raises(UserError, match="must be readable JSON"):
        read_release(release.directory)


def test_a_push_under_way_is_left_alone(tmp_path, parts, release, monkeypatch):
    """The lock of a live push protects its folder from the next one."""
    seen = []
    copyfile = shutil.copyfile

    def push_another(*arguments, **keywords):
        monkeypatch.setattr(shutil, "copyfile", copyfile)
        write_release(tmp_path / "releases", parts)
        seen.extend(os.listdir(tmp_path / "releases"))
        return copyfile(*arguments, **keywords)

    monkeypatch.setattr(shutil, "copyfile", push_another)
    last = write_release(tmp_path / "releases", parts)
    assert sum(name.startswith(STAGING) for name in seen) == 1
    assert versions(tmp_path / "releases")[-1] == last.version
    assert len(versions(tmp_path / "releases")) == 3

"""Releases: their content, what is rejected, and that a push is seen whole or not at all."""

import hashlib
import json
import os
import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from plain_release import MODEL_DESCRIPTION, write_sources

from pebr_tf.config import Config
from pebr_tf.files import STAGING
from pebr_tf.release import release as module
from pebr_tf.release.release import Release, find_release, write_release
from pebr_tf.release.versions import newest_version, roll_back, versions


def edit(release, **changes):
    path = release.directory / "manifest.json"
    content = json.loads(path.read_text())
    content.pop("digest", None)
    path.write_text(json.dumps({**content, **changes}))


def files(directory):
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_a_release_holds_what_answers_queries_and_its_manifest(release, sources):
    before = int(datetime.now(timezone.utc).strftime("%Y%m%d%H%M%S"))
    assert before - 200 < release.version <= before
    assert release.directory.name == str(release.version)
    content = {
        path.relative_to(release.directory).as_posix(): path.read_bytes()
        for path in files(release.directory)
    }
    manifest = json.loads(content.pop("manifest.json"))
    assert set(content) == {
        *("query_model/saved_model.pb", "query_model/variables/variables.index"),
        *(MODEL_DESCRIPTION, "index/index.json", "index/ids.npy"),
        *("payload.parquet", "moments.npz", "cutoff.json", "config.yaml"),
        *("evaluation.json", "report.html"),
    }
    digests = {name: hashlib.sha256(each).hexdigest() for name, each in content.items()}
    assert manifest["files"] == digests
    assert manifest["format"] == 1
    assert manifest["version"] == release.version
    assert manifest["span"] == 7
    assert manifest["config"] == Config().fingerprint()
    assert {"pebr-tf", "tensorflow", "scann"} <= set(manifest["packages"])
    assert datetime.fromisoformat(manifest["created"]).utcoffset().total_seconds() == 0
    again = Release.load(release.directory)
    assert again == release
    assert again.config() == module.load_config(release.directory) == sources.config
    assert again.report.read_text() == "<p>report</p>"


def test_versions_grow_whatever_the_clock_says(tmp_path, sources, monkeypatch):
    noon = datetime(2026, 5, 4, 12, 0, 0, tzinfo=timezone.utc)

    def push(step):
        monkeypatch.setattr("pebr_tf.release.release.utc_now", lambda: noon + step)
        return write_release(tmp_path / "releases", sources)

    steps = [timedelta(), timedelta(hours=-1), timedelta(days=-400), timedelta(hours=2)]
    found = [push(step).version for step in steps]
    assert found == [20260504120000, 20260504120001, 20260504120002, 20260504140000]
    # Also where the newest version is withdrawn, and even deleted.
    assert roll_back(tmp_path / "releases") == [20260504140000]
    assert push(timedelta()).version == 20260504140001
    assert roll_back(tmp_path / "releases") == [20260504140001]
    shutil.rmtree(tmp_path / "releases/20260504140001")
    again = push(timedelta())
    assert again.version == 20260504140002
    assert find_release(tmp_path / "releases") == again.directory
    assert again.manifest.created == "2026-05-04T12:00:00+00:00"
    for name in ("99990101000000", "notes", "0012"):
        (tmp_path / "releases" / name).mkdir()
    assert push(timedelta()).version == 99990101000001
    assert versions(tmp_path / "releases")[-2:] == [99990101000000, 99990101000001]
    assert find_release(tmp_path / "releases").name == "99990101000001"


def test_pushes_at_once_get_versions_of_their_own(tmp_path, sources):
    with ThreadPoolExecutor(6) as pool:
        pushed = list(pool.map(lambda _: write_release(tmp_path / "releases", sources), range(6)))
    assert sorted(each.version for each in pushed) == versions(tmp_path / "releases")
    assert len(versions(tmp_path / "releases")) == 6
    for each in pushed:
        assert Release.load(each.directory).version == each.version
    assert not list((tmp_path / "releases").glob(f"{STAGING}*"))


def test_a_version_that_was_taken_in_the_meantime_is_passed_over(tmp_path, sources, monkeypatch):
    (tmp_path / "releases" / "99990101000000").mkdir(parents=True)

    def stale(releases):
        monkeypatch.undo()
        seen = newest_version(releases)
        assert write_release(releases, sources).version == 99990101000001
        return seen

    monkeypatch.setattr("pebr_tf.release.release.newest_version", stale)
    late = write_release(tmp_path / "releases", sources)
    assert late.version == Release.load(late.directory).version == 99990101000002
    assert Release.load(tmp_path / "releases/99990101000001").version == 99990101000001


def test_a_push_under_way_is_left_alone(tmp_path, sources, release, monkeypatch):
    """The lock of a live push protects its folder from the next one."""
    seen = []
    copyfile = shutil.copyfile

    def push_another(*arguments, **keywords):
        monkeypatch.setattr(shutil, "copyfile", copyfile)
        write_release(tmp_path / "releases", sources)
        seen.extend(os.listdir(tmp_path / "releases"))
        return copyfile(*arguments, **keywords)

    monkeypatch.setattr(shutil, "copyfile", push_another)
    last = write_release(tmp_path / "releases", sources)
    assert sum(name.startswith(STAGING) for name in seen) == 1
    assert versions(tmp_path / "releases")[-1] == last.version
    assert len(versions(tmp_path / "releases")) == 3


@pytest.mark.parametrize(("owner", "name"), [(shutil, "copyfile"), (Path, "rename")])
def test_a_killed_push_is_unseen_and_the_next_removes_it(tmp_path, sources, rejection, owner, name):
    child = os.fork()
    if not child:
        try:
            setattr(owner, name, lambda *arguments: os.kill(os.getpid(), signal.SIGKILL))
            write_release(tmp_path / "releases", sources)
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert len(os.listdir(tmp_path / "releases")) == 1
    assert rejection(find_release, tmp_path / "releases") == (
        f"{tmp_path}/releases must be a release or a folder of releases."
    )
    release = write_release(tmp_path / "releases", sources)
    assert sorted(os.listdir(tmp_path / "releases")) == [str(release.version), "query_model"]
    Release.load(release.directory)


def test_a_failed_push_leaves_nothing(tmp_path, sources, monkeypatch, rejection):
    def full(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    assert rejection(write_release, tmp_path / "releases", sources) == (
        f"{tmp_path}/releases must have space. Received: No space left on device."
    )
    assert os.listdir(tmp_path / "releases") == []


@pytest.mark.parametrize("name", ["cutoff/query_model", "index/payload.parquet"])
def test_a_push_needs_all_sources(tmp_path, sources, rejection, name):
    path = tmp_path / "sources" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    sentence = rejection(write_release, tmp_path / "releases", sources)
    assert sentence == f"{path} is missing: a release needs it."
    assert not (tmp_path / "releases").exists()


def test_a_model_that_is_not_that_of_its_index_is_rejected(tmp_path, sources, release, rejection):
    other = write_sources(tmp_path / "other", seed=1)
    mixed = module.ReleaseSources(other.cutoff, sources.index, sources.evaluation, sources.config)
    mismatch = "query_model must be made for the index beside it, identity "
    assert mismatch in rejection(write_release, tmp_path / "releases", mixed)
    # Also with a manifest that has the right checksums.
    path = release.directory / MODEL_DESCRIPTION
    shutil.copyfile(other.cutoff / MODEL_DESCRIPTION, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    edit(release, files={**release.manifest.files, MODEL_DESCRIPTION: digest})
    assert mismatch in rejection(Release.load, release.directory)
    edit(release, files=release.manifest.files, identity="0" * 64)
    shutil.copyfile(sources.cutoff / MODEL_DESCRIPTION, path)
    assert rejection(Release.load, release.directory).startswith(
        f"{release.directory} must hold the model and index of its manifest, identity 000000000000"
    )


def test_a_damaged_file_is_rejected_by_name(release, rejection):
    """Bits flipped at either end and in the middle, files cut short, and files removed."""
    for path in files(release.directory):
        original = path.read_bytes()
        # Two bytes: without the last line break, JSON means the same.
        damaged = [original[:kept] for kept in {0, len(original) // 2, len(original) - 2}]
        for at in {0, len(original) // 2, len(original) - 1}:
            for bit in (1, 128):
                damaged.append(original[:at] + bytes([original[at] ^ bit]) + original[at + 1 :])
        for content in damaged:
            path.write_bytes(content)
            sentence = rejection(Release.load, release.directory)
            assert sentence.startswith(f"{path} must ")
            if path.name != "manifest.json":
                digests = (release.manifest.files[str(path.relative_to(release.directory))],)
                digests += (hashlib.sha256(content).hexdigest(),)
                assert sentence == (
                    f"{path} must have SHA-256 {digests[0][:12]}... as in manifest.json. "
                    f"Received: {digests[1][:12]}..."
                )
        path.unlink()
        sentence = f"{path} is missing from the release."
        if path.name == "manifest.json":
            sentence = f"{release.directory} must be a release with manifest.json."
        assert rejection(Release.load, release.directory) == sentence
        path.write_bytes(original)
    Release.load(release.directory)


def test_a_flipped_bit_anywhere_in_the_manifest_is_noticed(release, rejection):
    """Except in white space, which has no meaning."""
    path = release.directory / "manifest.json"
    original = path.read_bytes()
    for at in range(0, len(original), 5):
        if original[at : at + 1].isspace():
            continue
        path.write_bytes(original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :])
        assert str(path) in rejection(module.ReleaseManifest.load, release.directory)


def test_an_unverified_load_compares_no_checksums(release, rejection):
    (release.directory / "query_model/saved_model.pb").write_text("modem")
    assert Release.load(release.directory, verify=False) == release
    release.report.unlink()
    sentence = f"{release.report} is missing from the release."
    assert rejection(Release.load, release.directory, verify=False) == sentence


def test_an_added_file_is_rejected_by_name(release, rejection):
    for name in ("index/new.npy", "query_model/saved_model.pbtxt", "new/file"):
        added = release.directory / name
        added.parent.mkdir(exist_ok=True)
        added.write_text("new")
        sentence = f"{added} must be listed in manifest.json or be removed."
        assert rejection(Release.load, release.directory) == sentence
        added.rename(release.directory / ".DS_Store")
        Release.load(release.directory)


@pytest.mark.parametrize("name", ["index/ids.npy", "index"])
def test_a_link_cannot_lead_out_of_a_release(release, tmp_path, rejection, name):
    """Even to a file with the right checksum: it may be another file at the next look."""
    path, elsewhere = release.directory / name, tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    sentence = rejection(Release.load, release.directory)
    assert re.search(rf" must be a file of the release\. Received: a link to {elsewhere}", sentence)
    path.unlink()
    elsewhere.rename(release.directory / ".kept")
    path.symlink_to(release.directory / ".kept")
    Release.load(release.directory)


def test_a_folder_that_is_named_after_another_version_is_rejected(release, rejection):
    other = release.directory.rename(release.directory.parent / str(release.version + 1))
    assert rejection(Release.load, other) == (
        f"{other} must hold the version that it is named after. Received: {release.version}."
    )
    # Under a name that is not a version, it may be kept anywhere.
    backup = other.rename(other.parent / "backup")
    assert Release.load(backup).version == release.version


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "query_model/../../x", "a//b"])
def test_a_manifest_cannot_lead_out_of_the_release(release, rejection, name):
    edit(release, files={**release.manifest.files, name: "0" * 64})
    assert rejection(Release.load, release.directory) == (
        f"{release.directory}/manifest.json must list files inside the release. Received: {name!r}."
    )


def test_what_is_not_a_release_is_rejected(tmp_path, release, rejection):
    nowhere, path = tmp_path / "nowhere", release.directory / "manifest.json"
    assert rejection(Release.load, nowhere) == f"{nowhere} must be a release with manifest.json."
    sentence = f"{nowhere} must be a release or a folder of releases."
    assert rejection(find_release, nowhere) == sentence
    edit(release, format=2)
    assert rejection(Release.load, path.parent) == f"{path} must have format 1. Received: 2."
    edit(release, format=1, surprise=True)
    assert re.search(
        r"must have the keys of a manifest\. .*surprise", rejection(Release.load, release.directory)
    )
    path.write_text("[")
    sentence = rejection(Release.load, release.directory)
    assert sentence.startswith(f"{path} must be readable JSON. Received: ")

"""Releases in an object store: TensorFlow's file system in memory stands in for one."""

import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import tensorflow as tf
from withdrawals import withdraw

from pebr_tf import storage
from pebr_tf.errors import UserError
from pebr_tf.release import remote
from pebr_tf.release.release import Release, write_release
from pebr_tf.release.remote import CLAIM, CLAIMS, fetch, upload
from pebr_tf.release.versions import newest_served, restore, roll_back, served, versions

MANIFEST = "manifest.json"
BUCKET = "ram://bucket"
REMOTE = f"{BUCKET}/releases"
NONE = f"{REMOTE} must have a release that is whole and not withdrawn."


@pytest.fixture(autouse=True)
def store(memory_store):
    return memory_store


@pytest.fixture
def here(tmp_path):
    return tmp_path / "here"


def at(release, version):
    return replace(release, manifest=replace(release.manifest, version=version))


def put(name, content=b""):
    storage.write_bytes(f"{BUCKET}/{name}", content)


def put_release(release, *numbers):
    for number in numbers:
        at(release, number).manifest.save(release.directory)
        for name in (*release.manifest.files, "manifest.json"):
            put(f"releases/{number}/{name}", (release.directory / name).read_bytes())


def manifest_of(version):
    return json.loads(storage.read_bytes(f"{REMOTE}/{version}/manifest.json"))


def nothing_left(here):
    """Whether a folder is as it was before a fetch: missing or empty."""
    return not here.exists() or os.listdir(here) == []


def test_a_release_goes_there_and_back_and_its_manifest_comes_last(release, here, store):
    written = []
    store.before = lambda use, path: written.append(path) if use == "write" else None
    confirmed = []
    pushed = upload(f"{REMOTE}/", release, lambda: confirmed.append(len(written)))
    assert pushed.path == f"{REMOTE}/{pushed.version}"
    claim, *copied = written
    assert claim.startswith(f"{pushed.path}/{CLAIM}")
    assert copied == [f"{pushed.path}/{each}" for each in (*release.manifest.files, MANIFEST)]
    assert confirmed == [len(written) - 1]
    put(f"releases/{pushed.version}/query_model/added", b"not in the manifest")
    assert fetch(REMOTE, here) == here / str(pushed.version)
    assert not (here / str(pushed.version) / "query_model/added").exists()
    fetched = Release.load(here / str(pushed.version))
    assert fetched.manifest == release.manifest
    link = here / "query_model" / str(pushed.version)
    assert link.resolve() == fetched.query_model.resolve()
    assert sorted(os.listdir(here)) == [str(pushed.version), "query_model"]
    assert not list(fetched.directory.glob(".*"))


def test_a_release_that_is_not_confirmed_does_not_appear(release, here, rejection):
    def refuse():
        raise UserError("too late")

    assert rejection(upload, REMOTE, at(release, 5), refuse) == "too late"
    assert rejection(fetch, REMOTE, here) == NONE
    assert upload(REMOTE, at(release, 5)).version == 6


@pytest.mark.parametrize("uploaded", [0, 3, -1])
def test_an_upload_that_fails_is_no_release_and_its_version_is_used_up(
    release, here, store, rejection, uploaded
):
    names = [*sorted(release.manifest.files), "manifest.json"]
    left = names[uploaded:]

    def until(use, path):
        if use == "write" and path == f"{REMOTE}/5/{left[0]}":
            raise OSError("the store\nwent away.")

    store.before = until
    assert rejection(upload, REMOTE, at(release, 5)) == (
        f"{REMOTE}/5/{left[0]} must be within reach. Received: the store went away."
    )
    assert storage.names(REMOTE) == ["5"]
    for name in names:
        assert storage.exists(f"{REMOTE}/5/{name}") == (name not in left)
    assert rejection(fetch, REMOTE, here) == NONE
    assert not here.exists()
    store.before = lambda use, path: None
    assert upload(REMOTE, at(release, 5)).version == 6
    assert fetch(REMOTE, here).name == "6"


def test_versions_are_above_all_that_are_there_or_withdrawn(release, here):
    assert upload(REMOTE, at(release, 20)).version == 20
    assert upload(REMOTE, at(release, 20)).version == 21
    # Half a release, and what is not a version.
    put("releases/25/cutoff.json")
    put("releases/029/manifest.json")
    put("releases/99999999999999999999/manifest.json")
    assert upload(REMOTE, at(release, 20)).version == 26
    withdraw(REMOTE, 7, 30)
    assert upload(REMOTE, at(release, 20)).version == 31
    assert upload(REMOTE, at(release, 40)).version == 40
    assert fetch(REMOTE, here).name == "40"


def test_pushes_at_once_get_versions_of_their_own(tmp_path, sources, here, monkeypatch):
    all_have_looked, looks = threading.Barrier(4), threading.local()
    newest = remote.newest_version

    def look(folder):
        """The first time, nobody goes on before all have seen that nothing is there."""
        found = newest(folder)
        if not hasattr(looks, "first"):
            looks.first = found
            all_have_looked.wait(60)
        return found

    releases = [at(write_release(tmp_path / "local", sources), 5) for _ in range(4)]
    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(remote, "newest_version", look)
        pushed = list(pool.map(lambda each: upload(REMOTE, each), releases))
    found = sorted(each.version for each in pushed)
    assert len(set(found)) == 4
    for version in found:
        assert manifest_of(version)["version"] == version
    assert fetch(REMOTE, here).name == str(found[-1])


@pytest.fixture
def claim_before(store):
    """A function that makes another push claim each version first, so many times."""

    def claim(times):
        left = iter(range(times))

        def faster(use, path):
            if use == "write" and path.rpartition(CLAIM)[2] and next(left, None) is not None:
                put(f"{path.removeprefix(f'{BUCKET}/').partition(CLAIM)[0]}{CLAIM}", b"of another")

        store.before = faster

    return claim


def test_a_version_that_another_push_claims_is_left_to_it(release, claim_before):
    claim_before(2)
    # The other claim sorts first, so that the other push would go on to the next version.
    assert upload(REMOTE, at(release, 20)).version == 24
    for version in (20, 22):
        names = storage.names(f"{REMOTE}/{version}")
        assert len(names) == 2
        assert all(name.startswith(CLAIM) for name in names)


def test_a_push_that_gets_no_version_gives_up(release, claim_before, rejection):
    claim_before(CLAIMS)
    assert rejection(upload, REMOTE, release) == (
        f"{REMOTE} must have a version that no other push takes. Received: others at 10 tries."
    )
    assert len(storage.names(REMOTE)) == CLAIMS


def test_the_newest_is_fetched_once(release, here, sources):
    put_release(release, 9, 10)
    put("releases/11/cutoff.json")
    assert fetch(REMOTE, here) == here / "10"
    before = os.stat(here / "10" / "manifest.json")
    assert fetch(REMOTE, here) is None
    assert os.stat(here / "10" / "manifest.json") == before
    assert versions(here) == [10]
    put_release(release, 12)
    assert fetch(REMOTE, here) == here / "12"
    assert sorted(os.listdir(here)) == ["10", "12", "query_model"]
    assert sorted(os.listdir(here / "query_model")) == ["10", "12"]
    # What is newer here stays.
    assert newest_served(here) == 12 < write_release(here, sources).version
    assert fetch(REMOTE, here) is None


def test_only_what_is_whole_and_not_withdrawn_counts(release, here, rejection):
    assert newest_served(REMOTE) is None
    put("releases/11/cutoff.json")
    assert newest_served(REMOTE) is None
    put_release(release, 9, 10)
    assert newest_served(f"{REMOTE}/") == 10
    assert newest_served(REMOTE, without=[10]) == 9
    withdraw(REMOTE, 10)
    assert newest_served(REMOTE) == 9
    assert fetch(REMOTE, here) == here / "9"
    withdraw(REMOTE, 10, 9)
    assert rejection(fetch, REMOTE, here) == NONE
    # A remote withdrawal does not withdraw what is already here.
    assert served(here) == [9]


def test_after_a_rollback_here_only_a_later_push_is_fetched(release, here):
    put_release(release, 5)
    fetch(REMOTE, here)
    put_release(release, 6, 7)
    assert fetch(REMOTE, here) == here / "7"
    roll_back(here)
    withdraw(REMOTE, 7)
    # 6 was never here, so it is not what the rollback meant.
    assert fetch(REMOTE, here) is None
    assert served(here) == [5]
    assert sorted(os.listdir(here / "query_model")) == ["5", "7"]
    restore(here, 7)
    put_release(release, 8)
    assert fetch(REMOTE, here) == here / "8"


def test_a_changed_or_missing_file_is_rejected(release, here, rejection):
    put_release(release, 4)
    fetch(REMOTE, here)
    put_release(release, 5)
    name = "query_model/saved_model.pb"
    put(f"releases/5/{name}", b"modem")
    assert re.fullmatch(
        rf"{REMOTE}/5/{name} must have SHA-256 [0-9a-f]{{12}}\.\.\. as in manifest\.json\. "
        r"Received: [0-9a-f]{12}\.\.\.",
        rejection(fetch, REMOTE, here),
    )
    tf.io.gfile.remove(f"{REMOTE}/5/moments.npz")
    sentence = f"{REMOTE}/5/moments.npz is missing from the release."
    assert rejection(fetch, REMOTE, here) == sentence
    assert sorted(os.listdir(here)) == ["4", "query_model"]


def test_a_bad_manifest_is_rejected(release, here, rejection, tmp_path):
    put_release(release, 6, 7)
    of_another = storage.read_bytes(f"{REMOTE}/6/manifest.json")
    outwards = manifest_of(7)
    del outwards["digest"]
    outwards["files"]["../../../outside"] = "0" * 64
    put("releases/7/../../../outside", b"outside")
    for manifest, expected in {
        b"": "/manifest.json must be readable JSON. Received: Expecting value: line 1 column 1",
        b'{"format": 2}': "/manifest.json must have format 1. Received: 2.",
        of_another: " must hold the version that it is named after. Received: 6.",
        json.dumps(outwards).encode(): (
            "/manifest.json must list files inside the release. Received: '../../../outside'."
        ),
    }.items():
        put("releases/7/manifest.json", manifest)
        assert rejection(fetch, REMOTE, here).startswith(f"{REMOTE}/7{expected}")
        assert nothing_left(here)
    assert not (tmp_path / "outside").exists()


def test_a_fetch_that_another_one_overtakes_leaves_it_alone(release, here, monkeypatch):
    put_release(release, 5)
    load = Release.load

    def overtaken(directory):
        (here / "5").mkdir()
        (here / "5" / "manifest.json").write_text("of another")
        return load(directory)

    monkeypatch.setattr(Release, "load", overtaken)
    assert fetch(REMOTE, here) is None
    assert os.listdir(here) == ["5"]
    assert (here / "5" / "manifest.json").read_text() == "of another"


def test_what_a_killed_fetch_left_goes_with_the_next_and_links_are_optional(release, here, caplog):
    put_release(release, 5)
    (here / ".staging-killed" / "5").mkdir(parents=True)
    (here / "query_model").touch()
    assert fetch(REMOTE, here) == here / "5"
    assert sorted(os.listdir(here)) == ["5", "query_model"]
    assert "TF Serving will not find version 5: " in caplog.text


def test_a_store_that_fails_is_one_sentence(release, here, store, rejection):
    unknown = "a path must be local or begin with gs://, s3:// or minio://. Received: cloud://..."
    assert rejection(fetch, "cloud://bucket/releases", here) == unknown
    assert rejection(upload, "cloud://bucket/releases", release) == unknown
    for path in ("releases", "gs://", "ram:/bucket/"):
        sentence = "a remote folder of releases must be like gs://bucket/releases. Received: "
        sentence += f"{path}."
        assert rejection(fetch, path, here) == rejection(upload, path, release) == sentence
    put_release(release, 5)

    def unavailable(use, path):
        if use == "list":
            raise OSError

    store.before = unavailable
    assert rejection(fetch, REMOTE, here) == f"{REMOTE} must be within reach. Received: OSError."
    assert nothing_left(here)


def test_a_store_that_fails_while_it_is_read_leaves_nothing(release, here, store, rejection):
    put_release(release, 5)
    read = []

    def fourth(use, path):
        if use == "read":
            read.append(path)
            if len(read) == 4:
                raise OSError("too late")

    store.before = fourth
    sentence = rejection(fetch, REMOTE, here)
    assert read[1] == f"{REMOTE}/5/manifest.json"
    assert sentence == f"{read[3]} must be within reach. Received: too late."
    assert nothing_left(here)
    assert fetch(REMOTE, here) == here / "5"


def test_a_folder_that_cannot_be_written_is_named(release, here, tmp_path, monkeypatch, rejection):
    put_release(release, 5)
    (tmp_path / "file").touch()
    beyond = tmp_path / "file" / "releases"
    assert rejection(fetch, REMOTE, beyond) == (
        f"{beyond} must be a folder that a release can be written to. "
        f"Received: [Errno 20] Not a directory: '{beyond}'."
    )

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "replacing_file", full)
    sentence = f"{here} must have space. Received: No space left on device."
    assert rejection(fetch, REMOTE, here) == sentence
    assert nothing_left(here)

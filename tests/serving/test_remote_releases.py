"""Releases in an object store: TensorFlow's file system in memory stands in for one."""

import contextlib
import functools
import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pytest
import tensorflow as tf
from tiny_release import write_parts

import serving.remote
from pebr_tf.errors import UserError
from serving.push import push
from serving.release import read_release, write_release
from serving.remote import CLAIM, CLAIMS, fetch, is_remote, latest_remote, push_remote
from serving.retriever import Retriever
from serving.versions import served, versions
from serving.withdrawal import restore, roll_back

BUCKET = "ram://bucket"
REMOTE = f"{BUCKET}/releases"
QUERIES = ("red phone", "phone", "white laptop bag")


@pytest.fixture(autouse=True)
def bucket():
    tf.io.gfile.makedirs(BUCKET)
    yield
    # Of two folders one of whose names begins with the other's, it looks for the second in vain.
    with contextlib.suppress(tf.errors.NotFoundError):
        tf.io.gfile.rmtree(BUCKET)
    assert not tf.io.gfile.exists(BUCKET)


@pytest.fixture
def untried(monkeypatch):
    """Pushes write their release without trying it, which takes most of their time."""
    monkeypatch.setattr(
        "serving.remote.push", lambda releases, parts, now: write_release(releases, parts, now=now)
    )


def at(*time):
    """A clock that stands still."""
    return functools.partial(datetime, *time, tzinfo=timezone.utc)


def put(name, content=b""):
    """Writes a remote file by its path below the bucket."""
    path = f"{BUCKET}/{name}"
    tf.io.gfile.makedirs(os.path.dirname(path))
    # In memory, a file that is written again goes on where it ended.
    if tf.io.gfile.exists(path):
        tf.io.gfile.remove(path)
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(content)


def put_release(source, version):
    """Uploads a local release, with the version in its manifest, and nothing else."""
    content = json.loads((source / "manifest.json").read_text())
    del content["digest"]
    for name in content["files"]:
        put(f"releases/{version}/{name}", (source / name).read_bytes())
    put(f"releases/{version}/manifest.json", json.dumps({**content, "version": version}).encode())


def put_withdrawn(*numbers):
    entries = {str(number): {"reason": "", "time": ""} for number in numbers}
    put("releases/withdrawn.json", json.dumps(entries).encode())


def refusal(function, *arguments):
    """The whole sentence."""
    with pytest.raises(UserError) as caught:
        function(*arguments)
    return str(caught.value)


def failing(monkeypatch, name, error):
    """Lets a function of the store fail."""

    def fail(*arguments):
        raise error

    monkeypatch.setattr(tf.io.gfile, name, fail)


@pytest.fixture(scope="module")
def release(tmp_path_factory, parts):
    """A local release; do not write to it."""
    return write_release(tmp_path_factory.mktemp("local"), parts).directory


@pytest.fixture
def here(tmp_path):
    """Where releases are fetched to."""
    return tmp_path / "releases"


def test_what_is_remote():
    assert is_remote("gs://bucket/releases")
    assert not is_remote("releases")
    assert not is_remote("/mnt/gs:/releases")


def test_a_release_goes_there_and_back_and_answers_the_same(tmp_path, tower_files, here):
    parts = write_parts(tmp_path / "parts", *tower_files, examples=QUERIES)
    local = push(tmp_path / "local", parts)
    pushed = push_remote(f"{REMOTE}/", parts)
    assert pushed.path == f"{REMOTE}/{pushed.version}"
    assert fetch(REMOTE, here) == here / str(pushed.version)
    fetched = read_release(here / str(pushed.version))
    assert fetched.version == pushed.version
    assert fetched.manifest.span == 3
    assert fetched.path("self_test.json").read_text() == local.path("self_test.json").read_text()
    link = here / "query_model" / str(pushed.version)
    assert link.resolve() == fetched.path("query_model").resolve()
    assert sorted(os.listdir(here)) == [str(pushed.version), "query_model"]
    assert not list(fetched.directory.glob(".*"))
    before, after = (
        Retriever.load(each.directory).retrieve(list(QUERIES)) for each in (local, fetched)
    )
    for row in range(len(QUERIES)):
        assert before.rows(row, 150) == after.rows(row, 150)
        assert len(after.rows(row, 150)) > 0


def test_a_release_that_does_not_answer_is_not_uploaded(tmp_path, tower_files):
    parts = write_parts(tmp_path / "parts", *tower_files, examples=QUERIES)
    (parts.cutoff / "query_model/saved_model.pb").write_bytes(b"no model")
    assert refusal(push_remote, REMOTE, parts).startswith(
        "a release must load and answer before it is pushed. Received: "
    )
    assert not tf.io.gfile.exists(REMOTE)


@pytest.mark.usefixtures("untried")
def test_the_manifest_comes_last(parts, monkeypatch):
    copy, copied = tf.io.gfile.copy, []

    def remember(source, target):
        copied.append(target)
        copy(source, target)

    monkeypatch.setattr(tf.io.gfile, "copy", remember)
    pushed = push_remote(REMOTE, parts)
    files = json.loads(tf.io.gfile.GFile(f"{pushed.path}/manifest.json").read())["files"]
    assert copied == [f"{pushed.path}/{name}" for name in (*files, "manifest.json")]


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("uploaded", [0, 3, -1])
def test_an_upload_that_fails_is_no_release_and_its_version_is_used_up(
    parts, here, monkeypatch, uploaded
):
    names = sorted(write_release(here, parts).manifest.files)
    here = here.with_name("elsewhere")
    left = [*names, "manifest.json"][uploaded:]
    copy = tf.io.gfile.copy

    def until(source, target):
        if target.split("/", 5)[5] == left[0]:
            raise tf.errors.UnavailableError(None, None, "the store\nwent away.")
        copy(source, target)

    monkeypatch.setattr(tf.io.gfile, "copy", until)
    assert refusal(push_remote, REMOTE, parts, at(2026, 1, 2)) == (
        f"{REMOTE} must be a folder that a release can be written to. "
        "Received: the store went away."
    )
    assert tf.io.gfile.listdir(REMOTE) == ["20260102000000"]
    for name in (*names, "manifest.json"):
        assert tf.io.gfile.exists(f"{REMOTE}/20260102000000/{name}") == (name not in left)
    assert refusal(fetch, REMOTE, here) == (
        f"{REMOTE} must have a release that is whole and not withdrawn."
    )
    assert not here.exists()

    monkeypatch.setattr(tf.io.gfile, "copy", copy)
    assert push_remote(REMOTE, parts, at(2026, 1, 2)).version == 20260102000001
    assert fetch(REMOTE, here).name == "20260102000001"


@pytest.mark.usefixtures("untried")
def test_versions_are_above_all_that_are_there_or_withdrawn(parts):
    clock = at(2026, 1, 2)
    assert push_remote(REMOTE, parts, clock).version == 20260102000000
    assert push_remote(REMOTE, parts, clock).version == 20260102000001
    # Half of one, and what is no version.
    put("releases/20260102000005/cutoff.json")
    put("releases/020260102000009/manifest.json")
    put("releases/99999999999999999999/manifest.json")
    assert push_remote(REMOTE, parts, clock).version == 20260102000006
    put_withdrawn(7, 20260102000010)
    assert push_remote(REMOTE, parts, clock).version == 20260102000011
    assert push_remote(REMOTE, parts, at(2026, 1, 3)).version == 20260103000000


@pytest.mark.usefixtures("untried")
def test_a_store_that_marks_folders_with_a_slash(parts, here, monkeypatch):
    """Google Cloud Storage does."""
    listdir = tf.io.gfile.listdir

    def marked(path):
        names = listdir(path)
        return [f"{name}/" if tf.io.gfile.isdir(f"{path}/{name}") else name for name in names]

    monkeypatch.setattr(tf.io.gfile, "listdir", marked)
    push_remote(REMOTE, parts, at(2026, 1, 2))
    assert push_remote(REMOTE, parts, at(2026, 1, 2)).version == 20260102000001
    assert fetch(REMOTE, here).name == "20260102000001"


@pytest.mark.usefixtures("untried")
def test_pushes_at_once_get_versions_of_their_own(parts, here, monkeypatch):
    all_have_looked, looks = threading.Barrier(4), threading.local()
    versions_there = serving.remote._versions

    def look(remote):
        """The first time, nobody goes on before all have seen that nothing is there."""
        found = versions_there(remote)
        if not hasattr(looks, "first"):
            looks.first = found
            all_have_looked.wait(60)
        return found

    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(serving.remote, "_versions", look)
        pushes = [pool.submit(push_remote, REMOTE, parts, at(2026, 1, 2)) for _ in range(4)]
        found = sorted(push.result().version for push in pushes)
    assert len(set(found)) == 4
    for version in found:
        manifest = json.loads(tf.io.gfile.GFile(f"{REMOTE}/{version}/manifest.json").read())
        assert manifest["version"] == version
    assert fetch(REMOTE, here).name == str(found[-1])


@pytest.mark.usefixtures("untried")
def test_a_version_that_another_push_claims_is_left_to_it(parts, monkeypatch):
    makedirs, faster = tf.io.gfile.makedirs, iter([True, True])

    def after_another(path):
        makedirs(path)
        if re.fullmatch(r".*/\d+", path) and next(faster, False):
            with tf.io.gfile.GFile(f"{path}/{CLAIM}", "w") as file:
                file.write("of another")

    monkeypatch.setattr(tf.io.gfile, "makedirs", after_another)
    pushed = push_remote(REMOTE, parts, at(2026, 1, 2))
    # The other's claim sorts first, so that it would go on to the version right above.
    assert pushed.version == 20260102000004
    for version in (20260102000000, 20260102000002):
        names = tf.io.gfile.listdir(f"{REMOTE}/{version}")
        assert len(names) == 2
        assert all(name.startswith(CLAIM) for name in names)


@pytest.mark.usefixtures("untried")
def test_a_push_that_gets_no_version_gives_up(parts, monkeypatch):
    monkeypatch.setattr("serving.remote._names", lambda folder: ["of another"])
    assert refusal(push_remote, REMOTE, parts) == (
        f"{REMOTE} must have a version that no other push takes. Received: others at 10 tries."
    )
    monkeypatch.undo()
    assert len(tf.io.gfile.listdir(REMOTE)) == CLAIMS


def test_the_newest_is_fetched_once(release, here):
    for version in (9, 10):
        put_release(release, version)
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


def test_the_latest_is_whole_and_not_withdrawn(release):
    assert latest_remote(REMOTE) is None
    put("releases/11/cutoff.json")
    assert latest_remote(REMOTE) is None
    for version in (9, 10):
        put_release(release, version)
    assert latest_remote(f"{REMOTE}/") == f"{REMOTE}/10"
    put_withdrawn(10)
    assert latest_remote(REMOTE) == f"{REMOTE}/9"
    assert refusal(latest_remote, "cloud://bucket") == (
        "cloud://bucket must be a folder that a release can be read from. Received: "
        "File system scheme 'cloud' not implemented (file: 'cloud://bucket/withdrawn.json')."
    )


def test_what_is_withdrawn_there_is_not_fetched(release, here):
    for version in (9, 10):
        put_release(release, version)
    put_withdrawn(10)
    assert fetch(REMOTE, here) == here / "9"
    put_withdrawn(10, 9)
    assert refusal(fetch, REMOTE, here) == (
        f"{REMOTE} must have a release that is whole and not withdrawn."
    )
    # Whoever has it decides for himself.
    assert served(here) == [9]


def test_after_a_rollback_here_only_a_later_push_is_fetched(release, here):
    put_release(release, 5)
    fetch(REMOTE, here)
    for version in (6, 7):
        put_release(release, version)
    assert fetch(REMOTE, here) == here / "7"
    roll_back(here)
    put_withdrawn(7)
    # 6 was never here, and is not what was rolled back to.
    assert fetch(REMOTE, here) is None
    assert served(here) == [5]
    assert sorted(os.listdir(here / "query_model")) == ["5", "7"]
    restore(here, 7)
    put_release(release, 8)
    assert fetch(REMOTE, here) == here / "8"


def test_what_is_newer_here_stays(release, here, parts):
    put_release(release, 5)
    version = write_release(here, parts).version
    assert fetch(REMOTE, here) is None
    assert versions(here) == [version]


def nothing_left(here):
    """Whether a folder is as it was before a fetch: not there, or without anything in it."""
    return not here.exists() or os.listdir(here) == []


def test_a_changed_file_is_refused(release, here):
    put_release(release, 5)
    name = "query_model/saved_model.pb"
    content = bytearray((release / name).read_bytes())
    content[100] ^= 1
    put(f"releases/5/{name}", bytes(content))
    assert re.fullmatch(
        rf"{REMOTE}/5/{name} must have SHA-256 [0-9a-f]{{12}}\.\.\. as in manifest\.json\. "
        r"Received: [0-9a-f]{12}\.\.\.",
        refusal(fetch, REMOTE, here),
    )
    assert nothing_left(here)


def test_half_a_release_is_refused(release, here):
    put_release(release, 4)
    fetch(REMOTE, here)
    put_release(release, 5)
    tf.io.gfile.remove(f"{REMOTE}/5/moments.npz")
    assert refusal(fetch, REMOTE, here) == f"{REMOTE}/5/moments.npz is missing from the release."
    assert sorted(os.listdir(here)) == ["4", "query_model"]


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (b"", "/manifest.json must be readable JSON. Received: Expecting value: line 1 column 1"),
        (b'{"format": 2}', "/manifest.json must have format 1. Received: 2."),
        (None, " must hold the version that it is named after. Received: 6."),
    ],
)
def test_a_bad_manifest_is_refused(release, here, manifest, expected):
    put_release(release, 6)
    if manifest is None:
        manifest = tf.io.gfile.GFile(f"{REMOTE}/6/manifest.json", "rb").read()
    put_release(release, 7)
    put("releases/7/manifest.json", manifest)
    assert refusal(fetch, REMOTE, here).startswith(f"{REMOTE}/7{expected}")
    assert nothing_left(here)


def test_a_manifest_that_leads_out_of_the_release_is_refused(release, here, tmp_path):
    put_release(release, 5)
    content = json.loads(tf.io.gfile.GFile(f"{REMOTE}/5/manifest.json").read())
    content["files"]["../../../outside"] = "0" * 64
    put("releases/5/manifest.json", json.dumps(content).encode())
    put("releases/5/../../../outside", b"outside")
    assert refusal(fetch, REMOTE, here) == (
        f"{REMOTE}/5/manifest.json must list files inside the release. "
        "Received: '../../../outside'."
    )
    assert os.listdir(tmp_path) == ["releases"]


def test_a_file_that_is_not_in_the_manifest_stays_behind(release, here):
    put_release(release, 5)
    put("releases/5/query_model/added", b"added")
    fetch(REMOTE, here)
    assert not (here / "5/query_model/added").exists()
    assert read_release(here / "5").version == 5


def test_a_bad_list_of_withdrawals_is_refused_by_its_own_name(release, here):
    put_release(release, 5)
    put("releases/withdrawn.json", b'{"newest": {"reason": "", "time": ""}}')
    assert refusal(fetch, REMOTE, here) == (
        f"{REMOTE}/withdrawn.json must name versions. Received: 'newest'."
    )


def test_a_fetch_that_another_one_overtakes_leaves_it_alone(release, here, monkeypatch):
    put_release(release, 5)

    def overtaken(directory):
        (here / "5").mkdir()
        (here / "5" / "manifest.json").write_text("of another")
        return read_release(directory)

    monkeypatch.setattr("serving.remote.read_release", overtaken)
    assert fetch(REMOTE, here) is None
    assert os.listdir(here) == ["5"]
    assert (here / "5" / "manifest.json").read_text() == "of another"


def test_what_a_killed_fetch_left_goes_with_the_next(release, here):
    put_release(release, 5)
    (here / ".staging-killed" / "5").mkdir(parents=True)
    fetch(REMOTE, here)
    assert sorted(os.listdir(here)) == ["5", "query_model"]


@pytest.mark.usefixtures("untried")
def test_a_store_that_refuses_is_one_sentence(parts, here, release, monkeypatch):
    unknown = "File system scheme 'cloud' not implemented (file: 'cloud://bucket/releases"
    assert refusal(fetch, "cloud://bucket/releases", here) == (
        "cloud://bucket/releases must be a folder that a release can be fetched from. "
        f"Received: {unknown}/withdrawn.json')."
    )
    assert refusal(push_remote, "cloud://bucket/releases", parts) == (
        "cloud://bucket/releases must be a folder that a release can be written to. "
        f"Received: {unknown}')."
    )
    assert nothing_left(here)
    for path in ("releases", "gs://", "ram:/bucket/"):
        sentence = (
            f"a remote folder of releases must be like gs://bucket/releases. Received: {path}."
        )
        assert refusal(fetch, path, here) == sentence
        assert refusal(push_remote, path, parts) == sentence

    put_release(release, 5)
    failing(monkeypatch, "listdir", tf.errors.UnavailableError(None, None, ""))
    assert refusal(fetch, REMOTE, here) == (
        f"{REMOTE} must be a folder that a release can be fetched from. Received: UnavailableError."
    )


def test_a_store_that_fails_while_it_is_read_leaves_nothing(release, here, monkeypatch):
    put_release(release, 5)
    file, opened = tf.io.gfile.GFile, []

    def third(name, mode):
        opened.append(name)
        if len(opened) == 3:
            raise tf.errors.DeadlineExceededError(None, None, "too late")
        return file(name, mode)

    monkeypatch.setattr(tf.io.gfile, "GFile", third)
    assert refusal(fetch, REMOTE, here) == (
        f"{REMOTE} must be a folder that a release can be fetched from. Received: too late."
    )
    assert nothing_left(here)
    assert fetch(REMOTE, here) == here / "5"


def test_a_folder_that_cannot_be_written_is_named(release, tmp_path):
    put_release(release, 5)
    (tmp_path / "file").touch()
    here = tmp_path / "file" / "releases"
    assert refusal(fetch, REMOTE, here) == (
        f"{here} must be a folder that a release can be written to. "
        f"Received: [Errno 20] Not a directory: '{here}'."
    )


def test_a_full_disk_is_named_and_leaves_nothing(release, here, monkeypatch):
    put_release(release, 5)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("serving.remote.shutil.copyfileobj", full)
    assert refusal(fetch, REMOTE, here) == (
        f"{here} must be a folder that a release can be written to. "
        "Received: [Errno 28] No space left on device."
    )
    assert nothing_left(here)


def test_a_release_without_a_link_is_fetched_all_the_same(release, here, caplog):
    put_release(release, 5)
    here.mkdir()
    (here / "query_model").touch()
    assert fetch(REMOTE, here) == here / "5"
    assert "TF Serving will not find version 5: " in caplog.text

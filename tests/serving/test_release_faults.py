"""What damage, links, full disks and clocks do to releases: refused by name, and nothing lost."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tiny_release import write_parts

from pebr_tf.errors import UserError
from serving import manifest as manifests
from serving.push import push
from serving.release import latest_release, read_release, versions, write_release
from serving.retriever import Retriever
from serving.withdrawal import withdraw

PAGE = 4_096


@pytest.fixture(scope="module")
def examples(tmp_path_factory, tower_files):
    """Parts whose evaluation has examples."""
    folder = tmp_path_factory.mktemp("examples")
    return write_parts(folder, *tower_files, examples=("red phone", "phone"))


@pytest.fixture(scope="module")
def pushed(tmp_path_factory, examples):
    """A release that was tried."""
    return push(tmp_path_factory.mktemp("tried"), examples)


@pytest.fixture
def copy(tmp_path, pushed):
    """A copy of the release, to damage."""
    return shutil.copytree(pushed.directory, tmp_path / "releases" / str(pushed.version))


def files(directory):
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_a_flipped_bit_in_any_file_is_refused_by_name(copy):
    """At either end and in the middle of every file."""
    assert len(files(copy)) > 15
    for path in files(copy):
        original = path.read_bytes()
        for place in {0, len(original) // 2, len(original) - 1}:
            for bit in (0, 7):
                damaged = bytearray(original)
                damaged[place] ^= 1 << bit
                path.write_bytes(damaged)
                with pytest.raises(UserError, match=re.escape(str(path))):
                    read_release(copy)
        path.write_bytes(original)
    read_release(copy)


def test_a_flipped_bit_anywhere_in_the_manifest_is_seen(copy):
    """But in white space, which says nothing."""
    path = copy / "manifest.json"
    original = path.read_bytes()
    for place in range(0, len(original), 5):
        damaged = bytearray(original)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        if bytes(original[place : place + 1]).isspace():
            continue
        with pytest.raises(UserError, match=re.escape(str(path))):
            manifests.read(copy)


def test_a_shortened_file_is_refused_by_name(copy):
    for path in files(copy):
        original = path.read_bytes()
        # Two bytes, for without the last line break a text says the same.
        for kept in {0, len(original) // 2, len(original) - 2}:
            path.write_bytes(original[:kept])
            with pytest.raises(UserError, match=re.escape(str(path))):
                Retriever.load(copy)
        path.write_bytes(original)


def test_a_missing_file_is_refused_by_name(copy):
    for path in files(copy):
        original = path.read_bytes()
        path.unlink()
        sentence = f"{path} is missing from the release."
        if path.name == "manifest.json":
            sentence = f"{copy} must be a release with manifest.json."
        with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
            Retriever.load(copy)
        path.write_bytes(original)


@pytest.mark.parametrize("name", ["index/new.npy", "query_model/saved_model.pbtxt", "new/file"])
def test_an_added_file_is_refused_by_name(copy, name):
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("new")
    sentence = f"{copy / name} must be listed in manifest.json or be removed."
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        Retriever.load(copy)


@pytest.mark.parametrize("name", ["index/ids.npy", "index"])
def test_a_link_cannot_lead_out_of_a_release(copy, tmp_path, name):
    """Even to a file that the manifest would vouch for: it may be another one at the next look."""
    (copy / name).rename(tmp_path / "elsewhere")
    (copy / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(
        UserError, match=r"must be a file of the release\. Received: a link to .*el"
    ):
        read_release(copy)
    (copy / name).unlink()
    (tmp_path / "elsewhere").rename(copy / ".kept")
    (copy / name).symlink_to(copy / ".kept")
    read_release(copy)


def test_a_folder_that_is_named_after_another_version_is_refused(copy):
    version = int(copy.name)
    other = copy.rename(copy.parent / str(version + 1))
    sentence = f"{other} must hold the version that it is named after. Received: {version}."
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        read_release(other)
    # By a name that is no version it may be kept anywhere.
    assert read_release(other.rename(copy.parent / "backup")).version == version


def test_a_clock_that_jumps_back_gives_a_larger_version(tmp_path, parts):
    noon = datetime(2026, 5, 4, 12, 0, 0, tzinfo=timezone.utc)
    steps = [timedelta(), timedelta(hours=-1), timedelta(days=-400), timedelta(hours=2)]
    found = [
        write_release(tmp_path, parts, now=lambda step=step: noon + step).version for step in steps
    ]
    assert found == [20260504120000, 20260504120001, 20260504120002, 20260504140000]
    # Also where the newest version is withdrawn, and even gone.
    withdraw(tmp_path, 20260504140000)
    assert write_release(tmp_path, parts, now=lambda: noon).version == 20260504140001
    withdraw(tmp_path, 20260504140001)
    shutil.rmtree(tmp_path / "20260504140001")
    again = write_release(tmp_path, parts, now=lambda: noon)
    assert again.version == 20260504140002
    assert latest_release(tmp_path) == again.directory
    assert again.manifest.created == "2026-05-04T12:00:00+00:00"


def pages(directory):
    """Pages of memory that the files take."""
    return sum(-(-path.stat().st_size // PAGE) for path in files(directory))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 MB of its own, and a function that leaves some pages of it."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(mount)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a disk takes more rights")

    def leave(number):
        filler = mount / "filler"
        filler.unlink(missing_ok=True)
        status = os.statvfs(mount)
        size = (status.f_bavail - number) * PAGE
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)

    yield mount, leave
    # A model or an index that was loaded from there may not be collected yet.
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


def test_a_full_disk_loses_nothing(small_disk, examples, pushed):
    mount, leave = small_disk
    old = push(mount / "releases", examples)
    listing = sorted(os.listdir(mount / "releases"))
    needed = pages(pushed.directory)
    sentence = f"{mount / 'releases'} must have space. Received: No space left on device."
    # In the first file, in the model, in the index, among the warm-up and what is written last.
    for left in (0, needed // 4, needed // 2, needed - 12, needed - 4, needed - 1):
        leave(left)
        with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
            push(mount / "releases", examples)
        assert sorted(os.listdir(mount / "releases")) == listing
        assert read_release(old.directory) == old
    leave(needed + 8)
    new = push(mount / "releases", examples)
    assert versions(mount / "releases") == [old.version, new.version]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1_000, 60_000])
def test_a_limit_on_the_size_of_files_loses_nothing(tmp_path, examples, pushed, limit):
    old = shutil.copytree(pushed.directory, tmp_path / str(pushed.version))
    assert limit < max(path.stat().st_size for path in files(old))
    program = """
        import resource, sys
        from pathlib import Path
        from pebr_tf.errors import UserError
        from serving.push import push
        from serving.release import Parts
        from pebr_tf.config import Config

        limit, releases, *folders = sys.argv[1:]
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
        try:
            push(Path(releases), Parts(*map(Path, folders), Config()))
        except UserError as error:
            print(error)
    """
    folders = [examples.cutoff, examples.index, examples.evaluation]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(limit), tmp_path, *folders],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == f"{tmp_path} must have space. Received: {os.strerror(errno.EFBIG)}.\n"
    assert os.listdir(tmp_path) == [old.name]
    assert json.loads((old / "manifest.json").read_text())["version"] == pushed.version
    read_release(old)


def test_a_folder_that_nobody_may_write_to_is_named(tmp_path, examples):
    (tmp_path / "releases").write_text("a file")
    with pytest.raises(UserError, match=r"releases must be a folder that a release can be written"):
        push(tmp_path / "releases", examples)

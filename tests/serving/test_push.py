"""Pushes: the release is tested before it appears, and neither damage nor a full disk lose one."""

import dataclasses
import errno
import os
import resource
import shutil
import subprocess

import pytest
import tensorflow as tf
from tiny_release import write_parts

from pebr_tf.errors import UserError
from pebr_tf.release.release import Release, find_release
from pebr_tf.release.versions import versions
from serving.push import push, push_anywhere
from serving.retriever import Retriever
from serving.self_test import RecordedAnswer, SelfTest, difference

PAGE = 4_096
QUERIES = ("red phone", "phone", "white laptop bag", "手机")
# The last two scores are closer than rounding is allowed to move them.
ANSWER = RecordedAnswer(
    query="phone",
    knob="recall",
    value=0.9,
    count=250,
    threshold=0.4,
    item_ids=("a", "b", "c", "d"),
    scores=(0.9, 0.8, 0.70004, 0.7),
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory, tower_files):
    """What a release is made from; two of its example queries are not usable."""
    queries = (*QUERIES, "phone", "  ")
    return write_parts(tmp_path_factory.mktemp("sources"), *tower_files, examples=queries)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory, sources):
    """A release; do not write to it."""
    return push(tmp_path_factory.mktemp("pushed"), sources)


@pytest.fixture(scope="module")
def loaded(pushed):
    return Retriever.load(pushed.directory)


def files(directory):
    return [path for path in directory.rglob("*") if path.is_file()]


def rejected(releases, sources):
    before = sorted(os.listdir(releases))
    with pytest.raises(UserError) as caught:
        push(releases, sources)
    assert sorted(os.listdir(releases)) == before
    return str(caught.value)


def test_rounding_is_no_difference():
    for changes in (
        {},
        {"threshold": 0.4009},
        {"count": 255},
        {"scores": (0.90009, 0.80009, 0.70004, 0.7)},
        # Near-ties change places.
        {"item_ids": ("a", "b", "d", "c")},
        # An item from beyond the best replaces one of the near-ties at the end.
        {"item_ids": ("a", "b", "e", "d")},
        # The last item crossed the threshold.
        {"item_ids": ("a", "b", "c"), "scores": (0.9, 0.8, 0.70004)},
        {"item_ids": ("a", "b", "c", "d", "e"), "scores": (0.9, 0.8, 0.70004, 0.7, 0.4)},
    ):
        assert difference(ANSWER, dataclasses.replace(ANSWER, **changes)) is None, changes
    # Short lists may differ by two items.
    short = dataclasses.replace(ANSWER, count=4)
    assert difference(short, dataclasses.replace(short, count=6)) is None
    assert difference(short, dataclasses.replace(short, count=7)) == "7 items instead of 4"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threshold": 0.4011}, "threshold 0.40110 instead of 0.40000"),
        ({"threshold": None}, "threshold none instead of 0.40000"),
        ({"count": 256}, "256 items instead of 250"),
        ({"scores": (0.9, 0.8, 0.7, 0.6998)}, "score 0.69980 at rank 4 instead of 0.70000"),
        ({"item_ids": ("b", "a", "c", "d")}, "item 'b' at rank 1 instead of 'a'"),
        ({"item_ids": ("a", "e", "c", "d")}, "item 'e' at rank 2 instead of 'b'"),
    ],
)
def test_more_than_rounding_is_named(changes, words):
    assert difference(ANSWER, dataclasses.replace(ANSWER, **changes)) == words


def test_a_push_stores_the_answers_of_the_release(pushed, loaded, retriever):
    assert SelfTest.FILE in pushed.manifest.files
    answers = SelfTest.load(pushed.directory).answers
    asked = [(answer.knob, answer.query) for answer in answers]
    assert asked == [(knob, query) for knob in (None, "top_k") for query in QUERIES]
    for answer in answers:
        found = retriever.retrieve([answer.query], answer.knob, answer.value)
        item_ids, scores = found.items.row(0)
        assert answer.count == len(item_ids) >= len(answer.item_ids)
        assert list(answer.item_ids) == item_ids[:10].tolist()
        assert answer.scores == pytest.approx(scores[:10].tolist(), abs=1e-6)
        if answer.knob is None:
            assert answer.threshold == pytest.approx(float(found.items.thresholds[0]), abs=1e-6)
        else:
            assert answer.count == 10
    SelfTest.load(pushed.directory).compare(loaded)


def test_a_push_adds_warm_up_requests(pushed, sources):
    name = "query_model/assets.extra/tf_serving_warmup_requests"
    assert name in pushed.manifest.files
    assert len(list(tf.data.TFRecordDataset(str(pushed.directory / name)))) > 0
    assert not (sources.cutoff / name).exists()
    assert not (sources.cutoff / "manifest.json").exists()
    # Also compares all checksums with those of the push.
    assert Release.load(find_release(pushed.directory.parent)) == pushed


def test_a_release_that_answers_otherwise_is_rejected(tmp_path, loaded, pushed):
    other = dataclasses.replace(loaded, release=dataclasses.replace(pushed, directory=tmp_path))
    answers = list(SelfTest.load(pushed.directory).answers)
    right = answers[5].scores
    wrong = (*right[:2], right[2] + 0.01, *right[3:])
    answers[5] = dataclasses.replace(answers[5], scores=wrong)
    SelfTest(tuple(answers)).save(tmp_path)
    with pytest.raises(UserError) as caught:
        SelfTest.load(tmp_path).compare(other)
    assert str(caught.value) == (
        f"{tmp_path} must answer as when it was pushed. Received: for 'phone' by top_k 10, "
        f"score {right[2]:.5f} at rank 3 instead of {wrong[2]:.5f}."
    )
    for text in ("{", "[]", '{"answers": [{"query": "phone"}]}'):
        (tmp_path / "self_test.json").write_text(text)
        with pytest.raises(UserError, match=r"must be the self-test of a release\. Received"):
            SelfTest.load(tmp_path)


def test_without_examples_there_is_no_self_test(retriever, tmp_path, parts, caplog):
    with caplog.at_level("INFO"):
        SelfTest.load(retriever.release.directory).compare(retriever)
    assert f"Release {retriever.release.version} has no self-test." in caplog.messages
    release = push(tmp_path, parts)
    assert SelfTest.load(release.directory) == SelfTest()
    assert SelfTest.FILE in release.manifest.files
    assert "The evaluation has no examples: no warm-up, and an empty self-test." in caplog.messages


@pytest.fixture
def damaged(tmp_path, sources):
    """A copy of the sources to damage, beside a folder that has a release."""
    names = ("cutoff", "index", "evaluation")
    folders = {name: shutil.copytree(getattr(sources, name), tmp_path / name) for name in names}
    (tmp_path / "releases/7").mkdir(parents=True)
    return dataclasses.replace(sources, **folders)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("cutoff/query_model/saved_model.pb", "query_model must be a "),
        ("index/index/ids.npy", "index/ids.npy must have SHA-256 "),
    ],
)
@pytest.mark.usefixtures("memory_store")
def test_what_does_not_load_is_not_pushed(tmp_path, damaged, path, reason):
    (tmp_path / path).write_bytes((tmp_path / path).read_bytes()[:-8] + b"no model")
    sentence = rejected(tmp_path / "releases", damaged)
    assert sentence.startswith(
        f"a release must load and answer before it is pushed. Received: {reason}"
    )
    assert "\n" not in sentence
    assert str(tmp_path / "releases") not in sentence
    with pytest.raises(UserError, match=r"^a release must load and answer before it is pushed\. R"):
        push_anywhere("ram://bucket/releases", damaged)
    assert not tf.io.gfile.exists("ram://bucket/releases")
    (tmp_path / "file").write_text("a file")
    with pytest.raises(UserError, match="file must be a folder that a release can be written"):
        push(tmp_path / "file", damaged)


def test_a_release_that_does_not_answer_the_same_twice_is_not_pushed(
    tmp_path, damaged, monkeypatch
):
    record = SelfTest.record

    def noisy(retriever, queries):
        first, *others = record(retriever, queries).answers
        return SelfTest((dataclasses.replace(first, count=first.count + 9), *others))

    monkeypatch.setattr(SelfTest, "record", noisy)
    sentence = rejected(tmp_path / "releases", damaged)
    assert "must answer as when it was pushed. Received: for 'red phone' by the defau" in sentence


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


def test_a_full_disk_loses_nothing(small_disk, sources, pushed):
    mount, leave = small_disk
    copy_of = mount / "releases" / str(pushed.version)
    old = Release.load(shutil.copytree(pushed.directory, copy_of))
    needed = sum(-(-path.stat().st_size // PAGE) for path in files(pushed.directory))
    sentence = f"{mount / 'releases'} must have space. Received: No space left on device."
    # In the first file, in the model, in the index, among the warm-up and what is written last.
    for left in (0, needed // 4, needed // 2, needed - 12, needed - 1):
        leave(left)
        assert rejected(mount / "releases", sources) == sentence
        assert Release.load(old.directory) == old
    leave(needed + 8)
    new = push(mount / "releases", sources)
    assert versions(mount / "releases") == [old.version, new.version]


def test_a_limit_on_the_size_of_files_loses_nothing(tmp_path, sources, pushed):
    limit = 60_000
    old = shutil.copytree(pushed.directory, tmp_path / str(pushed.version))
    assert limit < max(path.stat().st_size for path in files(old))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        sentence = rejected(tmp_path, sources)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sentence == f"{tmp_path} must have space. Received: {os.strerror(errno.EFBIG)}."
    assert Release.load(old).version == pushed.version

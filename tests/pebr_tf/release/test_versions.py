"""Versions beside each other: what counts as one, what is withdrawn, and what TF Serving sees."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pytest

from pebr_tf.release.release import find_release
from pebr_tf.release.versions import link_models, restore, roll_back, served, versions, withdrawn


@pytest.fixture
def releases(tmp_path):
    """Folders of four versions; nothing here looks into them."""
    folder = tmp_path / "releases"
    for version in (7, 8, 9, 10):
        (folder / str(version) / "query_model").mkdir(parents=True)
    return folder


def links(releases):
    """Name -> target of the links for TF Serving."""
    folder = releases / "query_model"
    return {int(path.name): os.readlink(path) for path in folder.iterdir()}


def linked_to(*numbers):
    return {number: f"../{number}/query_model" for number in numbers}


@pytest.mark.parametrize(
    "name",
    [*("+5", "-5", "007", "5.0", "1e3", "5 ", " 5", "٥", "５", "²", "latest", ".5", "9" * 30)],
)
def test_only_a_plain_number_is_a_version(releases, name):
    (releases / name).mkdir()
    (releases / str(2**63)).mkdir()
    assert versions(releases) == [7, 8, 9, 10]
    (releases / str(2**63 - 1)).mkdir()
    assert versions(releases)[-1] == 2**63 - 1


def test_a_link_that_leads_out_is_no_version(releases, tmp_path):
    (tmp_path / "elsewhere" / "query_model").mkdir(parents=True)
    (releases / "11").symlink_to(tmp_path / "elsewhere")
    (releases / "12").symlink_to("../elsewhere")
    (releases / "13").symlink_to("..")
    (releases / "14").symlink_to("nowhere")
    (releases / "15").symlink_to("15")
    (releases / "16").write_text("a file")
    assert versions(releases) == [7, 8, 9, 10]
    assert find_release(releases) == releases / "10"
    # The folder of all releases may be reached by one.
    (tmp_path / "link").symlink_to(releases)
    assert versions(tmp_path / "link") == [7, 8, 9, 10]
    (releases / "10").rename(releases / "spare")
    (releases / "10").symlink_to("spare")
    assert versions(releases) == [7, 8, 9, 10]


def test_links_follow_the_versions(releases):
    link_models(releases)
    assert links(releases) == linked_to(7, 8, 9, 10)
    assert (releases / "query_model/9").resolve() == releases / "9/query_model"
    before = {path.name: path.lstat().st_ino for path in (releases / "query_model").iterdir()}
    link_models(releases)
    after = {path.name: path.lstat().st_ino for path in (releases / "query_model").iterdir()}
    assert after == before, "what is right is left alone"
    (releases / "7/query_model").rmdir()
    (releases / "7").rmdir()
    (releases / "query_model/9").unlink()
    (releases / "query_model/9").symlink_to("../8/query_model")
    # What is no link is left alone; what a killed call left is not.
    (releases / "query_model/8").unlink()
    (releases / "query_model/8").mkdir()
    (releases / "query_model/.10").symlink_to("../10/query_model")
    link_models(releases)
    assert not (releases / "query_model/8").is_symlink()
    (releases / "query_model/8").rmdir()
    assert links(releases) == linked_to(9, 10)


def test_a_withdrawn_version_is_passed_over(releases):
    before = datetime.now(timezone.utc).replace(microsecond=0)
    roll_back(releases, reason=" slow,\n\x1b[31m and  wrong ")
    ((version, withdrawal),) = withdrawn(releases).items()
    assert (version, withdrawal.reason) == (10, "slow, [31m and wrong")
    assert before <= datetime.fromisoformat(withdrawal.time) <= datetime.now(timezone.utc)
    assert served(releases) == [7, 8, 9]
    assert versions(releases) == [7, 8, 9, 10]
    assert find_release(releases) == releases / "9"
    assert not list(releases.glob(".*")), "no lock file stays"
    restore(releases, 10)
    assert withdrawn(releases) == {}
    assert find_release(releases) == releases / "10"
    assert links(releases) == linked_to(7, 8, 9, 10)


def test_what_answered_until_now_stays_linked_until_the_next_change(releases):
    """Servers that have yet to look still ask TF Serving for the version that they have."""
    roll_back(releases)
    assert links(releases) == linked_to(7, 8, 9, 10)
    assert roll_back(releases, to=7) == [8, 9]
    assert links(releases) == linked_to(7, 9), "the latest two: what answers, and what will"
    link_models(releases)
    assert links(releases) == linked_to(7)


def test_a_rollback_takes_the_newest_or_all_above(releases):
    assert roll_back(releases) == [10]
    assert roll_back(releases) == [9]
    assert roll_back(releases, to=8) == []
    assert roll_back(releases, to=7, reason="bad data") == [8]
    assert served(releases) == [7]
    assert {version: entry.reason for version, entry in withdrawn(releases).items()} == {
        **{10: "", 9: ""},
        8: "bad data",
    }


def test_something_is_always_left_to_serve(releases, rejection):
    roll_back(releases, to=7)
    content = (releases / "withdrawn.json").read_text()
    assert rejection(roll_back, releases) == (
        f"{releases} must keep a version to serve. Received: 7, and no other that is not withdrawn."
    )
    assert (releases / "withdrawn.json").read_text() == content
    (releases / "7/query_model").rmdir()
    (releases / "7").rmdir()
    sentence = f"{releases} must have a release that is not withdrawn."
    assert rejection(find_release, releases) == sentence


def test_mistakes_are_named(releases, tmp_path, rejection):
    unknown = f"version must be one of those in {releases}, the newest being 10. Received: 11."
    assert rejection(roll_back, releases, to=11) == unknown
    assert rejection(restore, releases, 9) == "version must be one that is withdrawn. Received: 9."
    roll_back(releases)
    sentence = "--to must name a version that is not withdrawn. Received: 10."
    assert rejection(roll_back, releases, to=10) == sentence
    nowhere = tmp_path / "nowhere"
    assert rejection(roll_back, nowhere) == f"{nowhere} must be a folder of releases."
    assert not nowhere.exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "must be readable JSON. Received: Expecting property name"),
        ("[7]", "must hold a reason and a time for each version. Received: [7]."),
        ('{"7": "bad"}', "must hold a reason and a time for each version. Received: {'7': 'bad'}."),
        ('{"../7": {"reason": "", "time": ""}}', "must name versions. Received: '../7'."),
        ("\udcff", "must be readable JSON. Received: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_broken_list_is_rejected(releases, text, sentence, rejection):
    (releases / "withdrawn.json").write_text(text, errors="surrogateescape")
    for reader in (withdrawn, find_release, roll_back, link_models):
        received = rejection(reader, releases)
        assert received.startswith(f"{releases}/withdrawn.json {sentence}")


def test_withdrawals_at_once_are_all_kept(tmp_path):
    releases = tmp_path / "releases"
    for version in range(40):
        (releases / str(version)).mkdir(parents=True)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: roll_back(releases), range(39)))
    assert sorted(found) == [[version] for version in range(1, 40)]
    assert withdrawn(releases).keys() == set(range(1, 40))
    assert served(releases) == [0]

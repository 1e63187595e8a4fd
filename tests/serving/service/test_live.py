"""Swaps, refusals and rollbacks of a folder of releases, one look at a time."""

import logging
import shutil
from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from pebr_tf.config import Serving
from pebr_tf.config.serving import Batching
from pebr_tf.errors import UserError
from serving import manifest as manifests
from serving.service.live import Live, ReleaseSource
from serving.service.metrics import Metrics
from serving.versions import versions
from serving.withdrawal import restore, withdraw

# No look happens by itself in the time of a test.
SETTINGS = Serving(poll_seconds=3_600, batching=Batching(max_size=2, queue_limit=256))


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_live(clock):
    opened = []

    def open_live(root, follow=True):
        metrics = Metrics()
        live = Live(ReleaseSource(root, follow), SETTINGS, metrics, clock)
        opened.append(live)
        return live, metrics

    yield open_live
    for live in opened:
        live.close()


def version_of(live):
    return live.retriever.release.version


def exported(metrics, name):
    lines = generate_latest(metrics.registry).decode().splitlines()
    return [line for line in lines if line.startswith(name)]


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def aside(root, version):
    """Takes a version out of sight, as if it had not been pushed yet."""
    shutil.move(root / str(version), root.parent / str(version))
    return lambda: shutil.move(root.parent / str(version), root / str(version))


def test_a_new_version_takes_over(root, open_live, caplog):
    old, new = versions(root)
    push = aside(root, new)
    live, metrics = open_live(root)
    before = live.retriever
    assert version_of(live) == old
    live.look()
    assert live.retriever is before
    push()
    with caplog.at_level(logging.INFO, "pebr.live"):
        live.look()
    assert version_of(live) == new
    assert [(each.msg, each.release, each.before) for each in caplog.records] == [
        ("swapped", new, old)
    ]
    assert metrics.registry.get_sample_value("pebr_release_version") == new
    assert exported(metrics, "pebr_release_swaps_total") == ["pebr_release_swaps_total 1.0"]


def test_a_broken_version_is_refused_and_the_old_one_goes_on(root, open_live, clock, caplog):
    old, new = versions(root)
    push = aside(root, new)
    live, metrics = open_live(root)
    push()
    broken = root / str(new) / "payload.parquet"
    good = broken.read_bytes()
    flip(broken)
    live.look()
    live.look()
    assert version_of(live) == old
    (record,) = [each for each in caplog.records if each.msg == "refused"]
    assert record.release == new
    assert record.reason.startswith(f"{broken} must have SHA-256 ")
    (line,) = exported(metrics, "pebr_release_refused{")
    assert f'version="{new}"' in line
    assert "must have SHA-256" in line
    assert exported(metrics, "pebr_release_refusals_total") == ["pebr_release_refusals_total 1.0"]
    # A repaired one is taken at a later look, and not before its pause is over.
    broken.write_bytes(good)
    clock.now += 299
    live.look()
    assert version_of(live) == old
    clock.now += 1
    live.look()
    assert version_of(live) == new
    assert exported(metrics, "pebr_release_refused{") == []


def test_a_self_test_that_fails_is_a_reason_to_refuse(root, open_live):
    old, new = versions(root)
    push = aside(root, new)
    live, metrics = open_live(root)
    push()
    # The manifest agrees with the file: only the answers are not those of the push.
    path = root / str(new) / "self_test.json"
    path.write_text(path.read_text().replace('"count": ', '"count": 9'))
    manifest = manifests.read(path.parent)
    files = {**manifest.files, path.name: manifests.checksum(path)}
    replace(manifest, files=files).write(path.parent)
    live.look()
    assert version_of(live) == old
    assert "items instead of 9" in exported(metrics, "pebr_release_refused{")[0]


def test_withdrawal_goes_back_and_restoring_forth(root, open_live):
    old, new = versions(root)
    live, _ = open_live(root)
    assert version_of(live) == new
    withdraw(root, new, "bad titles")
    live.look()
    assert version_of(live) == old
    restore(root, new)
    live.look()
    assert version_of(live) == new


def test_at_the_start_a_broken_newest_version_is_passed_over(root, open_live, caplog):
    old, new = versions(root)
    (root / str(new) / "cutoff.json").write_text("{}")
    live, metrics = open_live(root)
    assert version_of(live) == old
    assert [each.release for each in caplog.records if each.msg == "refused"] == [new]
    assert exported(metrics, "pebr_release_swaps_total") == ["pebr_release_swaps_total 0.0"]


def test_nothing_to_serve_is_one_sentence(root, open_live, tmp_path):
    empty = tmp_path / "empty"
    with pytest.raises(UserError, match=f"^{empty} must hold a release to serve\\.$"):
        open_live(empty)
    newest = root / str(versions(root)[-1])
    for version in versions(root):
        (root / str(version) / "cutoff.json").write_text("{}")
    with pytest.raises(UserError, match=f"^{newest}/cutoff.json must have SHA-256 "):
        open_live(root)


def test_one_release_stays(root, open_live):
    old, _ = versions(root)
    live, _ = open_live(root / str(old), follow=False)
    assert version_of(live) == old


def test_a_version_that_vanishes_goes_on_answering(root, open_live):
    old, new = versions(root)
    live, _ = open_live(root)
    shutil.rmtree(root / str(new))
    live.look()
    assert version_of(live) == old
    shutil.rmtree(root / str(old))
    live.look()
    assert len(live.retriever.retrieve(["phone"]).items.scores) > 0

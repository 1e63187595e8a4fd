"""Swaps, rejections and rollbacks of a folder of releases, one look at a time."""

import logging
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from prometheus_client import generate_latest
from withdrawals import withdraw

from pebr_tf.config import Serving
from pebr_tf.config.serving import Batching
from pebr_tf.errors import UserError
from pebr_tf.manifest import sha256
from pebr_tf.release.release import ReleaseManifest
from pebr_tf.release.versions import restore, versions
from serving.service import release_manager
from serving.service.metrics import Metrics
from serving.service.release_manager import ReleaseManager, ReleaseSource

# No look happens by itself in the time of a test.
SETTINGS = Serving(poll_seconds=3_600, batching=Batching(max_size=2, queue_limit=256))


@pytest.fixture
def open_manager():
    opened = []

    def open_manager(root):
        metrics = Metrics()
        manager = ReleaseManager(ReleaseSource(root, follow=True), SETTINGS, metrics)
        opened.append(manager)
        return manager, metrics

    yield open_manager
    for manager in opened:
        manager.close()


def version_of(manager):
    return manager.retriever.release.version


def exported(metrics, name):
    lines = generate_latest(metrics.registry).decode().splitlines()
    return [line for line in lines if line.startswith(name)]


def aside(root, version):
    """Takes a version out of sight, as if it had not been pushed yet."""
    shutil.move(root / str(version), root.parent / str(version))
    return lambda: shutil.move(root.parent / str(version), root / str(version))


def test_a_new_version_takes_over(root, open_manager, caplog):
    old, new = versions(root)
    push = aside(root, new)
    manager, metrics = open_manager(root)
    before = manager.retriever
    assert version_of(manager) == old
    manager.poll()
    assert manager.retriever is before
    push()
    with caplog.at_level(logging.INFO, "pebr.releases"):
        manager.poll()
    assert version_of(manager) == new
    (record,) = caplog.records
    assert (record.msg, record.release, record.before) == ("swapped", new, old)
    assert metrics.registry.get_sample_value("pebr_release_version") == new
    assert exported(metrics, "pebr_release_swaps_total") == ["pebr_release_swaps_total 1.0"]


def test_a_broken_version_is_rejected_and_the_old_one_goes_on(
    root, open_manager, caplog, monkeypatch
):
    old, new = versions(root)
    push = aside(root, new)
    now = [1_000.0]
    monkeypatch.setattr(release_manager, "time", SimpleNamespace(monotonic=lambda: now[0]))
    manager, metrics = open_manager(root)
    push()
    broken = root / str(new) / "payload.parquet"
    good = broken.read_bytes()
    broken.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    manager.poll()
    manager.poll()
    assert version_of(manager) == old
    (record,) = [each for each in caplog.records if each.msg == "rejected"]
    assert record.release == new
    assert record.reason.startswith(f"{broken} must have SHA-256 ")
    (line,) = exported(metrics, "pebr_release_rejected{")
    assert f'version="{new}"' in line
    assert "must have SHA-256" in line
    assert metrics.registry.get_sample_value("pebr_release_rejections_total") == 1
    # A repaired one is taken at a later look, and not before its pause is over.
    broken.write_bytes(good)
    now[0] += 299
    manager.poll()
    assert version_of(manager) == old
    now[0] += 1
    manager.poll()
    assert version_of(manager) == new
    assert exported(metrics, "pebr_release_rejected{") == []


def test_a_self_test_that_fails_is_a_reason_to_reject(root, open_manager):
    old, new = versions(root)
    push = aside(root, new)
    manager, metrics = open_manager(root)
    push()
    # The manifest agrees with the file: only the answers are not those of the push.
    path = root / str(new) / "self_test.json"
    path.write_text(path.read_text().replace('"count": ', '"count": 9'))
    manifest = ReleaseManifest.load(path.parent)
    files = {**manifest.files, path.name: sha256(path)}
    replace(manifest, files=files).save(path.parent)
    manager.poll()
    assert version_of(manager) == old
    assert "items instead of 9" in exported(metrics, "pebr_release_rejected{")[0]


def test_withdrawal_goes_back_and_restoring_forth(root, open_manager):
    old, new = versions(root)
    manager, _ = open_manager(root)
    assert version_of(manager) == new
    withdraw(root, new)
    manager.poll()
    assert version_of(manager) == old
    restore(root, new)
    manager.poll()
    assert version_of(manager) == new


def test_a_withdrawn_version_is_left_while_a_broken_one_waits(root, open_manager):
    old, new = versions(root)
    manager, _ = open_manager(root)
    (root / str(new + 1)).mkdir()
    manager.poll()
    withdraw(root, new)
    manager.poll()
    assert version_of(manager) == old


def test_at_the_start_a_broken_newest_version_is_passed_over(root, open_manager, caplog):
    old, new = versions(root)
    (root / str(new) / "cutoff.json").write_text("{}")
    manager, metrics = open_manager(root)
    assert version_of(manager) == old
    assert [each.release for each in caplog.records if each.msg == "rejected"] == [new]
    assert exported(metrics, "pebr_release_swaps_total") == ["pebr_release_swaps_total 0.0"]


def test_nothing_to_serve_is_one_sentence(root, open_manager, tmp_path):
    empty = tmp_path / "empty"
    with pytest.raises(UserError, match=f"^{empty} must hold a release to serve\\.$"):
        open_manager(empty)
    newest = root / str(versions(root)[-1])
    for version in versions(root):
        (root / str(version) / "cutoff.json").write_text("{}")
    with pytest.raises(UserError, match=f"^{newest}/cutoff.json must have SHA-256 "):
        open_manager(root)


def test_a_version_that_vanishes_goes_on_answering(root, open_manager):
    old, new = versions(root)
    manager, _ = open_manager(root)
    shutil.rmtree(root / str(new))
    manager.poll()
    assert version_of(manager) == old
    shutil.rmtree(root / str(old))
    manager.poll()
    assert len(manager.retriever.retrieve(["phone"]).items.scores) > 0

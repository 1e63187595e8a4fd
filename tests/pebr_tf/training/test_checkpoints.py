"""Checkpoints: the chief writes what every worker reads."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from pebr_tf.training.checkpoints import Checkpoints


@pytest.fixture
def made(tmp_path):
    """Checkpoints of a worker in the folder that all share, and the variable in them."""

    def make(chief):
        variable = tf.Variable(0)
        strategy = SimpleNamespace(extended=SimpleNamespace(should_checkpoint=chief))
        checkpoint = tf.train.Checkpoint(variable=variable)
        return Checkpoints(checkpoint, str(tmp_path / "shared"), 2, strategy), variable

    return make


def test_the_chief_keeps_the_last_ones(made, tmp_path):
    checkpoints, variable = made(chief=True)
    assert checkpoints.latest is None
    for step in (10, 20, 30):
        variable.assign(step)
        checkpoints.save(step)
    found = sorted(path.name for path in (tmp_path / "shared").glob("*.index"))
    assert found == ["ckpt-20.index", "ckpt-30.index"]
    assert checkpoints.latest == str(tmp_path / "shared" / "ckpt-30")


def test_another_worker_leaves_nothing_and_reads_the_chief_s(made, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    chief, written = made(chief=True)
    other, read = made(chief=False)
    other.restore()
    read.assign(7)
    other.save(10)
    assert not list((tmp_path / "shared").rglob("*.index"))
    assert len(list(temporary.rglob("*.index"))) == 1
    written.assign(3)
    chief.save(10)
    other.restore()
    assert int(read.numpy()) == 3
    del other
    assert not list(temporary.iterdir())

"""The loop: early stop, resumption, losses that explode; checkpoints of several workers."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from training_cases import model_of, parse, small, write_pairs

from pebr_tf.errors import UserError
from pebr_tf.training import loop
from pebr_tf.training.batches import training_batches, validation_batches
from pebr_tf.training.checkpoints import Checkpoints
from pebr_tf.training.loop import LOG_INTERVAL, Trainer
from pebr_tf.training.optimizers import optimizer_of

HERE = Path(__file__).parent


def weights(model):
    return [variable.numpy() for variable in model.trainable_variables]


def run(folder, progress=lambda step, loss: None, validate=True, logs=None, **changes):
    config = small(**changes)
    files = write_pairs(folder, 400)
    validation = validation_batches(files, parse, config.training)
    model = model_of(config, validation[0])
    trainer = Trainer(
        model, optimizer_of(config.training), config.training, folder / "checkpoints", logs
    )
    batches = training_batches(files, parse, config.training, trainer.resumed_from)
    return model, trainer.run(batches, validation if validate else [], progress), validation


def validation_loss(model, validation):
    return float(np.mean([float(model.compute_loss(batch)) for batch in validation]))


def test_the_loss_falls_and_progress_and_logs_hear_of_it(tmp_path):
    heard = {}
    _, trained, _ = run(
        tmp_path,
        heard.__setitem__,
        logs=tmp_path / "logs",
        training__steps=4 * LOG_INTERVAL,
        training__validation_interval=2 * LOG_INTERVAL,
    )
    assert list(heard) == [25, 50, 75, 100]
    assert heard[100] < heard[25]
    assert (trained.resumed_from, trained.stopped_early) == (0, False)
    (log,) = (tmp_path / "logs").iterdir()
    tags = [
        value.tag
        for event in tf.compat.v1.train.summary_iterator(str(log))
        for value in event.summary.value
    ]
    assert sorted(tags) == ["loss"] * 4 + ["validation_loss"] * 2


@pytest.mark.slow
def test_an_early_stop_brings_back_the_best_weights(tmp_path):
    model, trained, validation = run(
        tmp_path,
        # Far too fast: validation gets worse from its first or second time on.
        training__learning_rate=1.0,
        training__steps=400,
        training__validation_interval=5,
        training__early_stop_patience=3,
    )
    assert trained.stopped_early
    assert trained.steps < 400 - 3 * 5
    np.testing.assert_allclose(validation_loss(model, validation), trained.loss, rtol=1e-5)
    # As do those that a model has after so many steps without the stop.
    again, _, _ = run(
        _folder(tmp_path / "again"),
        training__learning_rate=1.0,
        training__steps=trained.steps,
        training__validation_interval=400,
    )
    for ours, theirs in zip(weights(model), weights(again), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_without_validation_the_last_weights_are_kept(tmp_path):
    _, trained, _ = run(tmp_path, validate=False, training__steps=3)
    assert trained.steps == 3
    assert math.isnan(trained.loss)


def test_a_finished_training_run_again_does_no_step(tmp_path):
    model, trained, _ = run(tmp_path, training__steps=10)
    again, resumed, _ = run(tmp_path, training__steps=10)
    assert (resumed.resumed_from, resumed.steps, resumed.loss) == (10, 10, trained.loss)
    for ours, theirs in zip(weights(model), weights(again), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("changes", "step"),
    [({"training__steps": 3}, 3), ({"training__steps": 30, "training__checkpoint_interval": 2}, 2)],
)
def test_a_loss_that_is_not_finite_names_the_learning_rate(tmp_path, changes, step):
    """At the last step, and before weights that are not finite become a checkpoint."""
    config = small(**changes)
    files = write_pairs(tmp_path, 400)
    batch = next(iter(training_batches(files, parse, config.training)))
    model = model_of(config, batch)
    model.item_tower._last.bias.assign([math.nan] * 8)
    trainer = Trainer(model, optimizer_of(config.training), config.training, tmp_path / "saved")
    with pytest.raises(
        UserError,
        match=r"^the training loss must stay finite: lower training\.learning_rate \(0\.003\)\. "
        rf"Received: nan at step {step}\.$",
    ):
        trainer.run(training_batches(files, parse, config.training), [])
    assert not list((tmp_path / "saved").rglob("*.index"))


def test_workers_that_find_different_checkpoints_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "numbers_of_all", lambda strategy, step: [step, 50])
    config = small()
    batch = next(iter(training_batches(write_pairs(tmp_path, 40), parse, config.training)))
    with pytest.raises(
        UserError,
        match=r"^every worker must find the same checkpoints, in a folder that all of them share\. "
        r"Received: the last steps 0, 50\.$",
    ):
        Trainer(model_of(config, batch), optimizer_of(config.training), config.training, tmp_path)


def test_an_interrupted_training_goes_on_from_its_last_checkpoint(tmp_path):
    """Another process is killed in test_worker_training; what is on disk is the same."""
    settings = {
        "training__steps": 3 * LOG_INTERVAL,
        "training__checkpoint_interval": LOG_INTERVAL,
        "training__validation_interval": LOG_INTERVAL,
    }

    def interrupt(step, loss):
        if step == 2 * LOG_INTERVAL:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, interrupt, **settings)
    model, trained, _ = run(tmp_path, **settings)
    # The interruption came before the checkpoint of its step.
    assert trained.resumed_from == LOG_INTERVAL
    assert int(model.optimizer.iterations) == 3 * LOG_INTERVAL
    assert math.isfinite(trained.loss)


@pytest.mark.slow
def test_two_devices_train_like_one(tmp_path):
    done = _process("mirrored_process.py", tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    # Each device has half of the pairs, and all others as negatives.
    assert answer["first"] == pytest.approx(answer["expected"], rel=1e-5)
    assert answer["after"] == pytest.approx(answer["measured"], rel=1e-5)
    assert answer["after"] < answer["before"]
    assert answer["equal_copies"]
    # Rounding; a gradient that reached its own device's pairs only would be off by a half.
    assert answer["worst_gradients"].keys() == {"beta_nce", "info_nce"}
    assert max(answer["worst_gradients"].values()) < 1e-5


def _process(script, *arguments):
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[2]}"},
    )


def _folder(path):
    path.mkdir()
    return path


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

"""The loop: early stop, resumption, losses that explode; checkpoints of several workers."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import forked
import mirrored_process
import numpy as np
import pytest
import tensorflow as tf
from training_cases import model_of, parse, small, write_pairs

from pebr_tf.training import loop
from pebr_tf.training.batches import training_batches, validation_batches
from pebr_tf.training.checkpoints import Checkpoints
from pebr_tf.training.loop import LOG_INTERVAL, Trainer, TrainingResult
from pebr_tf.training.optimizers import optimizer_of


class Counter(tf.keras.Model):
    """Every step adds 1 to its weight, which is best at 10."""

    def __init__(self, loss=1.0):
        super().__init__()
        self.count = self.add_weight(name="count", shape=(), initializer="zeros")
        self.training_loss = loss

    def train_step(self, batch):
        self.count.assign_add(1.0)
        return {"loss": tf.constant(self.training_loss)}

    def test_step(self, batch):
        return {"loss": (self.count - 10.0) ** 2}


def count(folder, model, validation=(), recall=lambda: (0.0, 0.0), **changes):
    """The outcome of a training of a Counter."""
    training = small(**changes).training
    trainer = Trainer(model, optimizer_of(training), training, folder)
    return trainer.run(itertools.repeat(tf.zeros([1])), validation, recall=recall)


@pytest.mark.parametrize(
    ("recalls", "steps", "highest"),
    [
        # Without a recall the loss decides.
        ([0.0] * 5, 10, 0.0),
        # A clear gain beats the lower loss of step 10, and a small one does not.
        ([0.2, 0.3, 0.5, 0.505, 0.4, 0.4], 15, 0.5),
        # Of almost equal recall the loss decides, however the recalls are ordered.
        ([0.505, 0.5, 0.49, 0.5, 0.505], 10, 0.505),
        # Small gains add up.
        ([0.1, 0.5, 0.508, 0.516, 0.4, 0.4, 0.4], 20, 0.516),
    ],
)
def test_recall_decides_before_loss_when_to_stop_and_what_is_best(
    tmp_path, recalls, steps, highest
):
    """The standard error is .01. The loss is lowest after 10 steps."""
    model, left = Counter(), iter(recalls)
    trained = count(
        tmp_path,
        model,
        [tf.zeros([1])],
        lambda: (next(left), 0.01),
        training__steps=400,
        training__validation_interval=5,
        training__early_stop_patience=3,
    )
    assert trained == TrainingResult(steps, (steps - 10.0) ** 2, pytest.approx(highest), 0)
    assert float(model.count) == steps
    assert next(left, None) is None


def test_without_validation_the_last_weights_are_kept(tmp_path):
    model = Counter()
    trained = count(tmp_path, model, training__steps=3)
    assert (trained.steps, float(model.count)) == (3, 3.0)
    assert math.isnan(trained.loss)


@pytest.mark.parametrize(
    ("changes", "step"),
    [({"training__steps": 3}, 3), ({"training__steps": 30, "training__checkpoint_interval": 2}, 2)],
)
def test_a_loss_that_is_not_finite_names_the_learning_rate(tmp_path, changes, step, rejection):
    """At the last step, and before weights that are not finite become a checkpoint."""
    assert rejection(count, tmp_path, Counter(math.nan), **changes) == (
        "the training loss must stay finite: lower training.learning_rate (0.003). "
        f"Received: nan at step {step}."
    )
    assert not list(tmp_path.rglob("*.index"))


def test_workers_that_find_different_checkpoints_say_so(tmp_path, monkeypatch, rejection):
    monkeypatch.setattr(loop, "numbers_of_all", lambda strategy, step: [step, 50])
    assert rejection(count, tmp_path, Counter()) == (
        "every worker must find the same checkpoints, in a folder that all of them share. "
        "Received: the last steps 0, 50."
    )


def test_an_interrupted_training_goes_on_from_its_last_checkpoint(tmp_path):
    """Another process is killed in test_worker_training; what is on disk is the same."""
    # A step of this loss is traced soonest.
    config = small(
        loss__family="info_nce",
        training__steps=4 * LOG_INTERVAL,
        training__checkpoint_interval=LOG_INTERVAL,
        training__validation_interval=2 * LOG_INTERVAL,
    )
    files = write_pairs(tmp_path, 400)
    validation = validation_batches(files, parse, config.training)

    def run(progress, logs=None):
        model = model_of(config, validation[0])
        trainer = Trainer(
            model, optimizer_of(config.training), config.training, tmp_path / "checkpoints", logs
        )
        batches = training_batches(files, parse, config.training, trainer.resumed_from)
        return model, trainer.run(batches, validation, progress)

    heard = {}

    def interrupt(step, loss):
        heard[step] = loss
        if step == 2 * LOG_INTERVAL:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupt)
    model, trained = run(heard.__setitem__, tmp_path / "logs")
    # The interruption came before the checkpoint of its step.
    assert trained.resumed_from == LOG_INTERVAL
    assert int(model.optimizer.iterations) == 4 * LOG_INTERVAL
    assert list(heard) == [25, 50, 75, 100]
    assert heard[100] < heard[25]
    measured = np.mean([float(model.compute_loss(batch)) for batch in validation])
    assert trained.loss == pytest.approx(measured, rel=1e-5)
    (log,) = (tmp_path / "logs").iterdir()
    tags = [
        value.tag
        for event in tf.compat.v1.train.summary_iterator(str(log))
        for value in event.summary.value
    ]
    assert sorted(tags) == ["loss"] * 3 + ["validation_loss"] * 2 + ["validation_recall"] * 2

    # Once it has ended, it does no step.
    again, finished = run(interrupt)
    assert finished == replace(trained, resumed_from=4 * LOG_INTERVAL)
    for ours, theirs in zip(model.trainable_variables, again.trainable_variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_two_devices_train_like_one(tmp_path):
    answer = forked.Running(mirrored_process.train, tmp_path).finish().answer()
    assert answer["after"] == pytest.approx(answer["measured"], rel=1e-5)
    assert answer["after"] < answer["before"]
    assert answer["equal_copies"]
    # Rounding; a gradient that reached its own device's pairs only would be off by a half.
    assert answer["worst_gradients"].keys() == {"beta_nce", "info_nce"}
    assert max(answer["worst_gradients"].values()) < 1e-5


def checkpoints(folder, chief):
    """Checkpoints of a worker in the folder that all share, and the variable in them."""
    variable = tf.Variable(0)
    strategy = SimpleNamespace(extended=SimpleNamespace(should_checkpoint=chief))
    return Checkpoints(tf.train.Checkpoint(variable=variable), folder, 2, strategy), variable


def test_another_worker_leaves_nothing_and_reads_the_chief_s(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    chief, written = checkpoints(str(tmp_path / "shared"), chief=True)
    other, read = checkpoints(str(tmp_path / "shared"), chief=False)
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

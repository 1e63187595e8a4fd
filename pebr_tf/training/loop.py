"""The training loop: steps, validations, checkpoints, an early stop, and a way back after a kill.

Keras' `fit` counts in epochs and converts itself with AutoGraph, which takes longer than a small
training; this loop counts in steps and traces one step as it is. A step and its gradient are
`tfrs.Model.train_step`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from pebr_tf.config import Training
from pebr_tf.errors import UserError
from pebr_tf.training.batches import Batch

# Steps between two lines of the log and two calls of `progress`.
LOG_INTERVAL = 25


@dataclass(frozen=True)
class Trained:
    """How a training went.

    Attributes:
      steps: Steps that the model's weights have seen.
      loss: Its loss on the validation pairs; NaN without them.
      resumed_from: The step that this process went on from, 0 if it began.
      stopped_early: Whether it ended for want of gain.
    """

    steps: int
    loss: float
    resumed_from: int
    stopped_early: bool


class Trainer:
    """Trains a model; what it needs to go on after a kill is in `checkpoints`."""

    def __init__(
        self,
        model: tf.keras.Model,
        optimizer: tf.keras.optimizers.Optimizer,
        training: Training,
        checkpoints: Path | str,
        logs: Path | str | None = None,
        strategy: tf.distribute.Strategy | None = None,
    ):
        """Makes the trainer, and takes up the last checkpoint if there is one.

        Args:
          model: A model with `train_step` and `test_step`, built.
          optimizer: What it is trained with.
          training: Steps, intervals and patience.
          checkpoints: Folder of this training alone.
          logs: Folder for TensorBoard; None writes none.
          strategy: What the model was made under.
        """
        self._model, self._training = model, training
        self._strategy = strategy or tf.distribute.get_strategy()
        model.compile(optimizer=optimizer)
        optimizer.build(model.trainable_variables)
        state = {name: tf.Variable(value) for name, value in _START.items()}
        self._step, self._best, self._best_step, self._waited = (state[name] for name in _START)
        whole = tf.train.Checkpoint(model=model, optimizer=optimizer, **state)
        self._latest = tf.train.CheckpointManager(whole, f"{checkpoints}/latest", max_to_keep=2)
        # Of the model its variables, for it also holds the optimizer's; with their loss and step,
        # for a kill may come before `latest` knows of them.
        numbers = {name: state[name] for name in ("best", "best_step")}
        best = tf.train.Checkpoint(weights=model.variables, **numbers)
        self._best_weights = tf.train.CheckpointManager(best, f"{checkpoints}/best", max_to_keep=1)
        self._log = tf.summary.create_file_writer(str(logs)) if logs else _no_log()
        self._traced_train = tf.function(self._train, autograph=False)
        self._traced_test = tf.function(self._test, autograph=False)
        if self._latest.latest_checkpoint:
            whole.restore(self._latest.latest_checkpoint)
        if self._best_weights.latest_checkpoint:
            best_numbers = tf.train.Checkpoint(**numbers)
            best_numbers.restore(self._best_weights.latest_checkpoint).expect_partial()
        self.resumed_from = int(self._step.numpy())

    def run(
        self,
        batches: Iterable[Batch],
        validation: Sequence[Batch],
        progress: Callable[[int, float], None] = lambda step, loss: None,
    ) -> Trained:
        """Trains to the last step, or until validation gains no more; leaves the best weights.

        Args:
          batches: Without end.
          validation: The same batches at every validation; none: the last weights are the best.
          progress: Called every few steps with the step and the training loss.
        """
        training, stopped = self._training, self._out_of_patience()
        source = iter(self._strategy.experimental_distribute_dataset(batches))
        step = self.resumed_from
        while step < training.steps and not stopped:
            loss = self._traced_train(next(source))
            step += 1
            last = step == training.steps
            if last or step % LOG_INTERVAL == 0:
                self._require_finite(step, float(loss))
                progress(step, float(loss))
                self._write("loss", loss, step)
            self._step.assign(step)
            if validation and (last or step % training.validation_interval == 0):
                stopped = self._validate(step, validation)
            if last or stopped or step % training.checkpoint_interval == 0:
                # Nothing comes back from weights that are not finite.
                self._require_finite(step, float(loss))
                self._latest.save(step)
        return self._finish(step, stopped)

    def _train(self, batch: Any) -> tf.Tensor:
        """The loss of one step; a replica has its part of the pairs, and them alone as negatives.

        The replicas' losses are sums over the global batch size: they add up to the mean.
        """
        losses = self._strategy.run(lambda part: self._model.train_step(part)["loss"], (batch,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def _test(self, batch: Any) -> tf.Tensor:
        """The loss of one batch, which every replica has whole."""
        losses = self._strategy.run(lambda whole: self._model.test_step(whole)["loss"], (batch,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def _validate(self, step: int, validation: Sequence[Batch]) -> bool:
        """Measures, keeps the weights if they are the best; whether patience has run out."""
        losses = [self._traced_test(batch) for batch in validation]
        loss = float(tf.reduce_mean(losses))
        self._write("validation_loss", loss, step)
        if loss < float(self._best.numpy()):
            self._best.assign(loss)
            self._best_step.assign(step)
            self._waited.assign(0)
            self._best_weights.save(step)
        else:
            self._waited.assign_add(1)
        return self._out_of_patience()

    def _out_of_patience(self) -> bool:
        patience = self._training.early_stop_patience
        return patience is not None and int(self._waited.numpy()) >= patience

    def _finish(self, step: int, stopped: bool) -> Trained:
        loss = float("nan")
        if int(self._best_step.numpy()):
            self._best_weights.checkpoint.restore(self._best_weights.latest_checkpoint)
            step, loss = int(self._best_step.numpy()), float(self._best.numpy())
        return Trained(step, loss, self.resumed_from, stopped)

    def _require_finite(self, step: int, loss: float) -> None:
        if not math.isfinite(loss):
            raise UserError(
                "the training loss must stay finite: lower training.learning_rate "
                f"({self._training.effective_learning_rate}). Received: {loss} at step {step}."
            )

    def _write(self, name: str, value: Any, step: int) -> None:
        with self._log.as_default():
            tf.summary.scalar(name, value, step)


_START: dict[str, Any] = {"step": 0, "best": float("inf"), "best_step": 0, "waited": 0}


def _no_log() -> tf.summary.SummaryWriter:
    return tf.summary.create_noop_writer()


def strategy_of(training: Training) -> tf.distribute.Strategy:
    """The devices that the config names; several workers find each other through TF_CONFIG."""
    if training.strategy == "mirrored":
        return tf.distribute.MirroredStrategy()
    if training.strategy == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.get_strategy()

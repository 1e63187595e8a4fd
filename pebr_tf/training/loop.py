"""The training loop: steps, validations, checkpoints, an early stop, and a way back after a kill.

Keras' `fit` counts in epochs and converts itself with AutoGraph, which takes longer than a small
training; this loop counts in steps and traces one step as it is. A step and its gradient are
`tfrs.Model.train_step`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pebr_tf.config import Training
from pebr_tf.errors import UserError
from pebr_tf.training.batches import Batch
from pebr_tf.training.checkpoints import Checkpoints
from pebr_tf.training.workers import all_staying, is_chief, numbers_of_all, wait_for_all

# Steps between two lines of the log and two calls of `progress`.
LOG_INTERVAL = 25


@dataclass(frozen=True)
class TrainingResult:
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
          checkpoints: Folder of this training alone, shared by all workers.
          logs: Folder for TensorBoard, which the chief writes to; None writes none.
          strategy: What the model was made under.

        Raises:
          UserError: The workers have found different checkpoints.
        """
        self._model, self._training = model, training
        self._strategy = strategy or tf.distribute.get_strategy()
        model.compile(optimizer=optimizer)
        optimizer.build(model.trainable_variables)
        state = {name: tf.Variable(value) for name, value in _START.items()}
        self._step, self._best, self._best_step, self._waited = (state[name] for name in _START)
        whole = tf.train.Checkpoint(model=model, optimizer=optimizer, **state)
        self._latest = Checkpoints(whole, f"{checkpoints}/latest", 2, self._strategy)
        # Of the model its variables, for it also holds the optimizer's; with their loss and step,
        # for a kill may come before `latest` knows of them.
        numbers = {name: state[name] for name in ("best", "best_step")}
        best = tf.train.Checkpoint(weights=model.variables, **numbers)
        self._best_weights = Checkpoints(best, f"{checkpoints}/best", 1, self._strategy)
        self._log = tf.summary.create_noop_writer()
        if logs and is_chief(self._strategy):
            self._log = tf.summary.create_file_writer(str(logs))
        self._traced_train = tf.function(self._train, autograph=False)
        self._traced_test = tf.function(self._test, autograph=False)
        self._latest.restore()
        if self._best_weights.latest:
            best_numbers = tf.train.Checkpoint(**numbers)
            best_numbers.restore(self._best_weights.latest).expect_partial()
        self.resumed_from = int(self._step.numpy())
        self._require_one_step()

    def run(
        self,
        batches: Iterable[Batch],
        validation: Sequence[Batch],
        progress: Callable[[int, float], None] = lambda step, loss: None,
    ) -> TrainingResult:
        """Trains to the last step, or until validation gains no more; leaves the best weights.

        Args:
          batches: Without end, each as `strategy.distribute_datasets_from_function` gives it: every
            replica has its part.
          validation: The same batches at every validation; none: the last weights are the best.
          progress: Called every few steps with the step and the training loss.

        Raises:
          UserError: The loss is not finite, or another worker was lost.
        """
        with all_staying(lambda: f"after step {self._step.numpy()}"):
            step, stopped = self._steps(iter(batches), validation, progress)
            return self._finish(step, stopped)

    def _steps(
        self,
        batches: Iterator[Batch],
        validation: Sequence[Batch],
        progress: Callable[[int, float], None],
    ) -> tuple[int, bool]:
        """The last step, and whether it was the last for want of gain."""
        training, stopped = self._training, self._out_of_patience()
        step = self.resumed_from
        while step < training.steps and not stopped:
            loss = self._traced_train(next(batches))
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
        return step, stopped

    def _train(self, batch: Any) -> tf.Tensor:
        """The loss of one step, to which each replica brings its part of the pairs.

        Every replica's loss is that of the global batch over their number: they add up to it.
        """
        losses = self._strategy.run(lambda part: self._model.train_step(part)["loss"], (batch,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def _test(self, batch: Any) -> tf.Tensor:
        """The loss of one batch, which every replica has whole."""
        losses = self._strategy.run(lambda whole: self._model.test_step(whole)["loss"], (batch,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def _validate(self, step: int, validation: Sequence[Batch]) -> bool:
        """Measures, keeps the weights if they are the best; whether patience has run out."""
        losses = [float(self._traced_test(batch)) for batch in validation]
        # Not by TensorFlow: machines of two kinds might round it differently, and part here.
        loss = float(np.float32(statistics.fmean(losses)))
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

    def _finish(self, step: int, stopped: bool) -> TrainingResult:
        loss = float("nan")
        if int(self._best_step.numpy()):
            # The chief may still be writing them.
            wait_for_all(self._strategy)
            self._best_weights.restore()
            step, loss = int(self._best_step.numpy()), float(self._best.numpy())
        return TrainingResult(step, loss, self.resumed_from, stopped)

    def _require_one_step(self) -> None:
        steps = numbers_of_all(self._strategy, self.resumed_from)
        if len(set(steps)) > 1:
            raise UserError(
                "every worker must find the same checkpoints, in a folder that all of them share. "
                f"Received: the last steps {', '.join(map(str, steps))}."
            )

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

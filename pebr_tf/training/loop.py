"""The training loop: steps, validation, checkpoints, early stopping, and resuming after a kill.

Keras' `fit` counts in epochs and converts itself with AutoGraph, which takes longer than a small
training. This loop counts in steps and traces one step without AutoGraph. A step and its gradient
are `tfrs.Model.train_step`.
"""

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
    """The outcome of a training.

    Attributes:
      steps: Steps that the model's weights have seen.
      loss: Its loss on the validation pairs; NaN without them.
      recall: The highest recall of the best weights and those that they replaced; 0 without any.
      resumed_from: The step that this process resumed from, 0 for a new training.
    """

    steps: int
    loss: float
    recall: float
    resumed_from: int


class Trainer:
    """Trains a model, and can resume from its checkpoints after a kill."""

    def __init__(
        self,
        model: tf.keras.Model,
        optimizer: tf.keras.optimizers.Optimizer,
        training: Training,
        checkpoints: Path | str,
        logs: Path | str | None = None,
        strategy: tf.distribute.Strategy | None = None,
    ):
        """Makes the trainer and restores the last checkpoint if there is one.

        The model is built, in the scope of `strategy`. `checkpoints` is a folder for this training
        only, shared by all workers; `logs` one for TensorBoard, which the chief writes.
        """
        self._training = training
        self._strategy = strategy or tf.distribute.get_strategy()
        model.compile(optimizer=optimizer)
        optimizer.build(model.trainable_variables)
        state = {name: tf.Variable(value) for name, value in _START.items()}
        self._state = state
        self._step, self._waited = state["step"], state["waited"]
        whole = tf.train.Checkpoint(model=model, optimizer=optimizer, **state)
        self._latest = Checkpoints(whole, f"{checkpoints}/latest", 2, self._strategy)
        # Only the model's variables, because the model also holds the optimizer's; with their loss
        # and step, because a kill may come before `latest` has them.
        numbers = {name: state[name] for name in _BEST}
        best = tf.train.Checkpoint(weights=model.variables, **numbers)
        self._best_weights = Checkpoints(best, f"{checkpoints}/best", 1, self._strategy)
        self._log = tf.summary.create_noop_writer()
        if logs and is_chief(self._strategy):
            self._log = tf.summary.create_file_writer(str(logs))
        # A step has a part of the pairs on each replica, whose losses add up to that of the global
        # batch; a test has a full copy on each.
        self._traced_train = self._traced(model.train_step)
        self._traced_test = self._traced(model.test_step)
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
        recall: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0),
    ) -> TrainingResult:
        """Trains to the last step, or until validation stops improving; keeps the best weights.

        The best weights have the highest recall. Where recall differs by less than its standard
        error, the loss decides.

        Args:
          batches: Endless, each as `strategy.distribute_datasets_from_function` gives it: every
            replica has its part.
          validation: Batches for every validation; without any, the last weights are the best.
          progress: Called every few steps with the step and the training loss.
          recall: The recall of the model as it is and its standard error, the same on all workers.
        """
        with all_staying(lambda: f"after step {self._step.numpy()}"):
            return self._finish(self._steps(iter(batches), validation, progress, recall))

    def _steps(
        self,
        batches: Iterator[Batch],
        validation: Sequence[Batch],
        progress: Callable[[int, float], None],
        recall: Callable[[], tuple[float, float]],
    ) -> int:
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
                stopped = self._validate(step, validation, *recall())
            if last or stopped or step % training.checkpoint_interval == 0:
                # Training cannot recover from weights that are not finite.
                self._require_finite(step, float(loss))
                self._latest.save(step)
        return step

    def _traced(self, step: Callable[[Any], dict[str, tf.Tensor]]) -> Callable[[Any], tf.Tensor]:
        """A graph of the sum over all replicas of the losses of a model's step."""

        def summed(batch: Any) -> tf.Tensor:
            losses = self._strategy.run(lambda part: step(part)["loss"], (batch,))
            return self._strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

        return tf.function(summed, autograph=False)

    def _validate(
        self, step: int, validation: Sequence[Batch], recall: float, error: float
    ) -> bool:
        """Validates, keeps the best weights, and returns whether patience has run out."""
        losses = [float(self._traced_test(batch)) for batch in validation]
        # Not in TensorFlow: different machines might round differently and then diverge.
        loss = float(np.float32(statistics.fmean(losses)))
        self._write("validation_loss", loss, step)
        self._write("validation_recall", recall, step)
        best_recall, best_loss, _ = (self._state[name].numpy().item() for name in _BEST)
        gain = recall - best_recall
        if gain > error or (gain >= -error and loss < best_loss):
            # The highest: many small losses of recall must not add up.
            for name, value in zip(_BEST, (max(recall, best_recall), loss, step), strict=True):
                self._state[name].assign(value)
            self._waited.assign(0)
            self._best_weights.save(step)
        else:
            self._waited.assign_add(1)
        return self._out_of_patience()

    def _out_of_patience(self) -> bool:
        patience = self._training.early_stop_patience
        return patience is not None and int(self._waited.numpy()) >= patience

    def _finish(self, step: int) -> TrainingResult:
        recall, loss, best_step = (self._state[name].numpy().item() for name in _BEST)
        if not best_step:
            return TrainingResult(step, float("nan"), 0.0, self.resumed_from)
        # The chief may still be writing them.
        wait_for_all(self._strategy)
        self._best_weights.restore()
        return TrainingResult(best_step, loss, recall, self.resumed_from)

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


# The best validation so far: its recall, loss and step.
_BEST = ("best_recall", "best_loss", "best_step")
_START = {"step": 0, "waited": 0, "best_recall": -1.0, "best_loss": float("inf"), "best_step": 0}

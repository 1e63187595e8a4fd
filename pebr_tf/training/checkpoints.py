"""Checkpoints that all workers take part in and that only one of them keeps."""

from __future__ import annotations

import tempfile

import tensorflow as tf

from pebr_tf.training.workers import is_chief


class Checkpoints:
    """Checkpoints in a folder that every worker reads and the chief writes.

    What each replica counts for itself is added up over all of them when it is saved. So the others
    have to save, too: into a folder that ends with their process.
    """

    def __init__(
        self,
        checkpoint: tf.train.Checkpoint,
        directory: str,
        keep: int,
        strategy: tf.distribute.Strategy,
    ):
        """Makes them.

        Args:
          checkpoint: What is saved and restored.
          directory: Of these checkpoints alone, shared by all workers.
          keep: How many are kept, the latest ones.
          strategy: What the variables were made under.
        """
        self._checkpoint, self._directory = checkpoint, directory
        self._temporary = None if is_chief(strategy) else tempfile.TemporaryDirectory("pebr")
        own = directory if self._temporary is None else self._temporary.name
        self._manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=keep)

    @property
    def latest(self) -> str | None:
        """The last one of the chief's."""
        path: str | None = tf.train.latest_checkpoint(self._directory)
        return path

    def save(self, step: int) -> None:
        """Saves; on every worker, or none returns."""
        self._manager.save(step)

    def restore(self) -> None:
        """Takes up the latest, if there is one."""
        if self.latest:
            self._checkpoint.restore(self.latest)

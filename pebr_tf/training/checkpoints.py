"""Checkpoints that all workers save together and only the chief keeps."""

import tempfile

import tensorflow as tf

from pebr_tf.training.workers import is_chief


class Checkpoints:
    """Checkpoints in a folder that every worker reads and the chief writes.

    Saving adds up the counters of all replicas, so the other workers must save, too: into a
    temporary folder of their process.
    """

    def __init__(
        self,
        checkpoint: tf.train.Checkpoint,
        directory: str,
        keep: int,
        strategy: tf.distribute.Strategy,
    ):
        """Makes the checkpoints of a folder, of which the latest `keep` are kept.

        The strategy is the one in whose scope the variables were made.
        """
        self._checkpoint, self._directory = checkpoint, directory
        self._temporary = None if is_chief(strategy) else tempfile.TemporaryDirectory("pebr")
        own = directory if self._temporary is None else self._temporary.name
        self._manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=keep)

    @property
    def latest(self) -> str | None:
        """Path of the chief's last checkpoint, or None."""
        path: str | None = tf.train.latest_checkpoint(self._directory)
        return path

    def save(self, step: int) -> None:
        """Saves; every worker must call it, or none returns."""
        self._manager.save(step)

    def restore(self) -> None:
        if self.latest:
            self._checkpoint.restore(self.latest)

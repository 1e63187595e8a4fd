"""Training with several workers: TF_CONFIG, synchronisation, and the loss of a worker."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from pebr_tf.config import Training
from pebr_tf.errors import UserError

# The jobs of a cluster that train.
_JOBS = ("chief", "worker")
_FORM = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
# TensorFlow's reason for a failed collective operation; the first sentence of it.
_ABORTED = re.compile(r"Collective ops is aborted by: (.*?)(?:\. .*)?\.?$", re.MULTILINE)


def strategy_of(training: Training) -> tf.distribute.Strategy:
    """The strategy that the config names; several workers find each other through TF_CONFIG."""
    strategy = _strategy(training)
    replicas = strategy.num_replicas_in_sync
    if training.batch_size % replicas:
        raise UserError(
            f"training.batch_size must be a multiple of the number of devices ({replicas}). "
            f"Received: {training.batch_size}."
        )
    return strategy


def _strategy(training: Training) -> tf.distribute.Strategy:
    if training.strategy == "one_device":
        return tf.distribute.get_strategy()
    if training.strategy == "mirrored" or worker_count(os.environ.get("TF_CONFIG")) == 1:
        return tf.distribute.MirroredStrategy()
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        raise UserError(
            "each of several workers must be a process that runs the Trainer alone. "
            "Received: a process in which TensorFlow has already computed."
        ) from error


def worker_count(text: str | None) -> int:
    """The number of workers that the text of a TF_CONFIG names; 1 without one."""
    if text is None:
        return 1
    try:
        config = json.loads(text)
    except ValueError:
        raise UserError(f"TF_CONFIG must be JSON such as {_FORM}. Received: {text!r}.") from None
    jobs = _jobs_of_task(config)
    if jobs is None:
        raise UserError(
            f"TF_CONFIG must have a cluster, and in it this task, a chief or a worker: {_FORM}. "
            f"Received: {text!r}."
        )
    return sum(len(jobs.get(job, ())) for job in _JOBS)


def _jobs_of_task(config: Any) -> dict[str, list[str]] | None:
    """Addresses of each job; None if the task is not among them."""
    match config:
        case {"cluster": dict(jobs), "task": {"type": str(job), "index": int(index)}}:
            addresses = jobs.get(job) if job in _JOBS else None
            if isinstance(addresses, list) and 0 <= index < len(addresses):
                return jobs
    return None


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this worker writes the files; a single worker always does."""
    return bool(strategy.extended.should_checkpoint)


def numbers_of_all(strategy: tf.distribute.Strategy, number: int) -> list[int]:
    """The numbers of all workers, one per replica; returns when all have called it."""
    if strategy.num_replicas_in_sync == 1:
        return [number]

    def gathered(own: tf.Tensor) -> tf.Tensor:
        # Only tensors on a device can be gathered; an argument is on none.
        return tf.distribute.get_replica_context().all_gather(tf.identity(own), axis=0)

    traced = tf.function(lambda own: strategy.run(gathered, (own,)), autograph=False)
    copies = strategy.experimental_local_results(traced(tf.constant([number], tf.int64)))
    return [int(value) for value in copies[0].numpy()]


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    numbers_of_all(strategy, 0)


@contextlib.contextmanager
def all_staying(when: Callable[[], str]) -> Iterator[None]:
    """Turns the loss of another worker into a UserError; no worker can continue without it.

    `when` returns the time of the loss in words.
    """
    try:
        yield
    except tf.errors.OpError as error:
        reason = _ABORTED.search(str(error))
        if reason is None:
            raise
        raise UserError(
            "every worker must stay until training ends: restart all of them, and training "
            "continues at its last checkpoint. "
            f"Received: a worker lost {when()} ({reason[1]})."
        ) from error

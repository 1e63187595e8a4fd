"""A training as one of several workers: FOLDER, the worker that is killed and when, its index."""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from unittest import mock

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)

# isort: split
from training_cases import model_of, parse, small

from pebr_tf.training import loop
from pebr_tf.training.batches import training_batches, validation_batches
from pebr_tf.training.optimizers import optimizer_of
from pebr_tf.training.workers import strategy_of

INTERVAL = 8
STEPS = 3 * INTERVAL


def train(folder, strategy, steps=STEPS, kill_at=None):
    """How a training on the pairs in a folder went, with the loss of every step."""
    config = small(
        training__strategy=strategy,
        training__steps=steps,
        training__checkpoint_interval=INTERVAL,
        training__validation_interval=INTERVAL,
    )
    training = config.training
    devices = strategy_of(training)
    files = [str(path) for path in sorted(folder.glob("*.gz"))]
    validation = validation_batches(files, parse, training)
    with devices.scope():
        model = model_of(config, validation[0])
        trainer = loop.Trainer(
            model,
            optimizer_of(training),
            training,
            folder / "checkpoints",
            folder / "logs",
            devices,
        )
    batches = devices.distribute_datasets_from_function(
        lambda context: training_batches(files, parse, training, trainer.resumed_from, context)
    )
    losses = {}

    def progress(step, loss):
        losses[step] = loss
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch.object(loop, "LOG_INTERVAL", 1):
        trained = trainer.run(batches, validation, progress)
    digest = hashlib.sha256()
    for variable in model.trainable_variables:
        digest.update(variable.numpy().tobytes())
    return {
        **vars(trained),
        "losses": list(losses.items()),
        "replicas": devices.num_replicas_in_sync,
        "iterations": int(model.optimizer.iterations.numpy()),
        "weights": digest.hexdigest(),
    }


def main(folder, killed, kill_at, index):
    print(json.dumps(train(folder, "multi_worker", kill_at=kill_at if index == killed else None)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))

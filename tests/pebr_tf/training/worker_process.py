"""A training as one of several workers, and what it gave."""

import hashlib
import json
import os
import signal
from unittest import mock

import tensorflow as tf
from training_cases import model_of, parse, small

from pebr_tf.training import loop
from pebr_tf.training.batches import training_batches, validation_batches
from pebr_tf.training.optimizers import optimizer_of
from pebr_tf.training.retrieval_validation import RetrievalValidation
from pebr_tf.training.text_table import TextTable
from pebr_tf.training.workers import strategy_of

INTERVAL = 4
STEPS = 3 * INTERVAL


@tf.autograph.experimental.do_not_convert
def train(folder, strategy, steps=STEPS, kill_at=None):
    """How a training on the pairs in a folder went, with the loss of every step.

    Without AutoGraph, which takes longer than the rest.
    """
    config = small(
        # The loss that is traced soonest.
        loss__family="info_nce",
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
    names = ("item_title_tokens", "item_hash")
    items = TextTable(
        [
            (tf.strings.as_string(batch["item_hash"]), {name: batch[name] for name in names})
            for batch in validation
        ]
    )
    retrieval = RetrievalValidation(model, validation, items, 3, devices)
    losses = {}

    def progress(step, loss):
        losses[step] = loss
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch.object(loop, "LOG_INTERVAL", 1):
        trained = trainer.run(batches, validation, progress, retrieval.recall)
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


def work(folder, killed, kill_at, index):
    """Prints how it went, unless this worker is the one to be killed."""
    print(json.dumps(train(folder, "multi_worker", kill_at=kill_at if index == killed else None)))

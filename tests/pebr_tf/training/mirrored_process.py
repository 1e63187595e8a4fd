"""Training steps on two virtual devices, in a process of its own: prints losses as JSON."""

import json
import sys
from pathlib import Path

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)

# isort: split
import numpy as np
import tensorflow as tf
from training_cases import model_of, parse, small, write_pairs

from pebr_tf.training.batches import training_batches, validation_batches
from pebr_tf.training.loop import Trainer
from pebr_tf.training.optimizers import optimizer_of

STEPS = 25


def first_batch(files, training):
    return next(iter(training_batches(files, parse, training)))


def copy_weights(source, target):
    for ours, theirs in zip(target.trainable_variables, source.trainable_variables, strict=True):
        ours.assign(theirs.numpy())


def main(folder):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    # The order of the pairs depends on it, too.
    tf.keras.utils.set_random_seed(0)
    config = small(training__steps=STEPS, training__validation_interval=STEPS)
    training = config.training
    files = write_pairs(folder, 400)
    whole = first_batch(files, training)
    halves = [{name: v[part] for name, v in whole.items()} for part in (slice(8), slice(8, 16))]

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    validation = validation_batches(files, parse, training)
    with strategy.scope():
        model = model_of(config, whole)
        trainer = Trainer(
            model, optimizer_of(training), training, folder / "checkpoints", strategy=strategy
        )
    alone = model_of(config, whole)
    copy_weights(model, alone)
    expected = sum(float(alone.compute_loss(half, training=True)) for half in halves) / 2
    before = np.mean([float(alone.compute_loss(batch)) for batch in validation])
    distributed = iter(
        strategy.experimental_distribute_dataset(training_batches(files, parse, training))
    )
    first = float(trainer._traced_train(next(distributed)))
    trained = trainer.run(training_batches(files, parse, training), validation)
    copy_weights(model, alone)
    measured = np.mean([float(alone.compute_loss(batch)) for batch in validation])
    table = model.tables.tables["tokens"]
    copies = [copy.numpy() for copy in strategy.experimental_local_results(table)]
    print(
        json.dumps(
            {
                "expected": expected,
                "first": first,
                "before": before,
                "after": trained.loss,
                "measured": measured,
                "equal_copies": bool((copies[0] == copies[1]).all()),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Training steps on two virtual devices, which TensorFlow must be told of before anything else."""

import json

import numpy as np
import tensorflow as tf
from training_cases import model_of, parse, small, write_pairs

from pebr_tf.training.batches import training_batches, validation_batches
from pebr_tf.training.loop import Trainer
from pebr_tf.training.optimizers import optimizer_of

STEPS = 10
# Between them, all that a loss takes of a batch, and a variable that is used after the gathering.
LOSSES = {
    "beta_nce": {"loss__log_q": True, "loss__gamma": 0.5, "loss__coverage_weight": 1.0},
    "info_nce": {"loss__family": "info_nce", "loss__learn_temperature": True},
}


def copy_weights(source, target):
    for ours, theirs in zip(target.trainable_variables, source.trainable_variables, strict=True):
        ours.assign(theirs.numpy())


def parts(strategy, files, training):
    return iter(
        strategy.distribute_datasets_from_function(
            lambda context: training_batches(files, parse, training, context=context)
        )
    )


def gradients(model, batch):
    with tf.GradientTape() as tape:
        loss = model.compute_loss(batch, training=True)
    found = tape.gradient(loss, model.trainable_variables)
    assert isinstance(found[0], tf.IndexedSlices), "a table's gradient must be of a batch's rows"
    return loss, [tf.convert_to_tensor(gradient) for gradient in found]


def worst_gradients(strategy, files):
    """For each loss, how far a gradient is from that of one device, as a share of its largest."""
    worst = {}
    for name, changes in LOSSES.items():
        config = small(**changes)
        whole = next(iter(training_batches(files, parse, config.training)))
        alone = model_of(config, whole)
        if alone.tau_head.built:
            # It starts at 0, and then nothing below has a gradient.
            kernel = alone.tau_head._perceptron[-1].kernel
            kernel.assign(tf.random.normal(kernel.shape, seed=1))
        with strategy.scope():
            model = model_of(config, whole)
        copy_weights(alone, model)

        @tf.function(autograph=False)
        def summed(batch, model=model):
            found = strategy.run(lambda part: gradients(model, part), (batch,))
            return tf.nest.map_structure(
                lambda values: strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None), found
            )

        loss, ours = summed(next(parts(strategy, files, config.training)))
        expected_loss, expected = gradients(alone, whole)
        np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
        worst[name] = max(
            float(np.abs(our - their).max() / np.abs(their).max())
            for our, their in zip(ours, expected, strict=True)
        )
    return worst


def train(folder):
    """Prints what training on two devices gave, and one device, as JSON."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    # The order of the pairs depends on it, too.
    tf.keras.utils.set_random_seed(0)
    # The loss that is traced soonest; the gradients below are of both.
    config = small(training__steps=STEPS, training__validation_interval=STEPS, **LOSSES["info_nce"])
    training = config.training
    files = write_pairs(folder, 400)
    whole = next(iter(training_batches(files, parse, training)))

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    validation = validation_batches(files, parse, training)
    with strategy.scope():
        model = model_of(config, whole)
        trainer = Trainer(
            model, optimizer_of(training), training, folder / "checkpoints", strategy=strategy
        )
    alone = model_of(config, whole)
    copy_weights(model, alone)
    before = np.mean([float(alone.compute_loss(batch)) for batch in validation])
    trained = trainer.run(parts(strategy, files, training), validation)
    copy_weights(model, alone)
    measured = np.mean([float(alone.compute_loss(batch)) for batch in validation])
    table = model.tables.tables["tokens"]
    copies = [copy.numpy() for copy in strategy.experimental_local_results(table)]
    print(
        json.dumps(
            {
                "before": before,
                "after": trained.loss,
                "measured": measured,
                "equal_copies": bool((copies[0] == copies[1]).all()),
                "worst_gradients": worst_gradients(strategy, files),
            }
        )
    )

"""Fits a small head on frozen vectors, with early stopping on held-out queries."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

BATCH = 512
LEARNING_RATE = 3e-3
MOST_STEPS = 1_500
HELD_OUT = 0.1
# Held-out rows are evaluated after each pass over the data, but not before so many steps.
LEAST_STEPS = 20
# The fit ends after so many passes, and so many steps, without an improvement.
PATIENT_PASSES, PATIENT_STEPS = 10, 300


def fit(
    head: tf.keras.layers.Layer,
    losses: Callable[..., tf.Tensor],
    arrays: Sequence[np.ndarray],
    seed: int = 0,
) -> None:
    """Fits the head and restores the weights that were best on held-out rows.

    `losses` maps a batch of the arrays, float with Q rows each, to losses [B]. The head is built. A
    tenth of the rows is held out. With fewer than ten rows, all are both fitted and held out.
    """
    count = len(arrays[0])
    generator = np.random.default_rng(seed)
    held_out, train = np.split(generator.permutation(count), [int(count * HELD_OUT)])
    # In the order of the rows, as the order of sums changes their last bits.
    held_out, train = np.sort(held_out if len(held_out) else train), np.sort(train)
    optimizer = tf.keras.optimizers.Adam(LEARNING_RATE)
    signature = [tf.TensorSpec([None, *array.shape[1:]], tf.float32) for array in arrays]

    @tf.function(autograph=False, input_signature=signature)
    def step(*batch: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(losses(*batch))
        variables = head.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    @tf.function(autograph=False, input_signature=signature)
    def measure(*batch: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(losses(*batch))

    def tensors(rows: np.ndarray) -> list[tf.Tensor]:
        return [tf.constant(array[rows], tf.float32) for array in arrays]

    checked = tensors(held_out)
    best, weights, last_gain, steps = np.inf, head.get_weights(), 0, 0
    steps_per_pass = -(-len(train) // BATCH)
    patience = max(PATIENT_PASSES * steps_per_pass, PATIENT_STEPS)
    while steps < min(last_gain + patience, MOST_STEPS):
        for _ in range(-(-LEAST_STEPS // steps_per_pass)):
            generator.shuffle(train)
            for begin in range(0, len(train), BATCH):
                step(*tensors(train[begin : begin + BATCH]))
                steps += 1
        loss = float(measure(*checked))
        if loss < best:
            best, weights, last_gain = loss, head.get_weights(), steps
    head.set_weights(weights)

"""SparseAdam, against an Adam of NumPy for each row."""

import numpy as np
import pytest
import tensorflow as tf

from pebr_tf.config import Training
from pebr_tf.training.optimizers import SparseAdam, optimizer_of


def numpy_adam(table, gradients, rate=0.1, first=0.9, second=0.999, epsilon=1e-7):
    """`table` after dictionaries row -> gradient; rows that a step lacks stand still."""
    table = table.astype(np.float64)
    mean, square = np.zeros_like(table), np.zeros_like(table)
    for step, rows in enumerate(gradients, 1):
        scale = rate * np.sqrt(1 - second**step) / (1 - first**step)
        for row, gradient in rows.items():
            mean[row] = first * mean[row] + (1 - first) * gradient
            square[row] = second * square[row] + (1 - second) * gradient**2
            table[row] -= scale * mean[row] / (np.sqrt(square[row]) + epsilon)
    return table


def test_touched_rows_move_as_in_adam_and_others_stand_still():
    generator = np.random.default_rng(0)
    start = generator.normal(size=(6, 3)).astype(np.float32)
    table = tf.Variable(start)
    optimizer = SparseAdam(0.1)
    optimizer.build([table])
    apply = tf.function(
        lambda slices: optimizer.apply_gradients([(slices, table)]), autograph=False
    )
    steps = []
    # The second step has a row twice: its gradients are one sum.
    for rows in ([0, 2], [2, 4, 2], [0, 4], [2, 3]):
        values = generator.normal(size=(len(rows), 3)).astype(np.float32)
        slices = tf.IndexedSlices(tf.constant(values), tf.constant(rows, tf.int64))
        apply(slices)
        sums = {}
        for row, value in zip(rows, values, strict=True):
            sums[row] = sums.get(row, 0) + value
        steps.append(sums)
    np.testing.assert_allclose(table, numpy_adam(start, steps), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(table.numpy()[[1, 5]], start[[1, 5]])


def test_the_config_names_the_optimizer_and_its_rate():
    adam, adagrad = optimizer_of(Training()), optimizer_of(Training(optimizer="adagrad"))
    assert isinstance(adam, SparseAdam)
    assert isinstance(adagrad, tf.keras.optimizers.Adagrad)
    assert float(adam.learning_rate) == pytest.approx(0.003)
    assert float(adagrad.learning_rate) == pytest.approx(0.05)
    assert float(optimizer_of(Training(learning_rate=0.5)).learning_rate) == 0.5


def test_under_a_strategy_the_rows_of_a_batch_alone_are_read():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        table = tf.Variable(tf.ones([6, 3]))
        optimizer = SparseAdam(0.1)
        optimizer.build([table])

    def step(values):
        slices = tf.IndexedSlices(values, tf.constant([0, 2]), tf.constant([6, 3]))
        optimizer.apply_gradients([(slices, table)])

    traced = tf.function(lambda values: strategy.run(step, (values,)), autograph=False)
    values = np.array([[1.0, 2.0, -3.0], [0.5, 0.0, 1.0]], np.float32)
    operations = traced.get_concrete_function(tf.constant(values)).graph.get_operations()
    assert [o.type for o in operations].count("ResourceGather") == 2
    assert table.shape not in [o.outputs[0].shape for o in operations if o.type == "ReadVariableOp"]
    traced(tf.constant(values))
    expected = numpy_adam(np.ones((6, 3)), [{0: values[0], 2: values[1]}])
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-5)

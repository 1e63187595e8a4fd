"""The optimizers that the config names."""

import tensorflow as tf

from pebr_tf.config import Training


class SparseAdam(tf.keras.optimizers.Adam):
    """Adam that touches only the rows of a table that a batch has.

    Keras' Adam decays the moments of every row in every step, and so rewrites the whole table three
    times for the few thousand rows of a batch. Here absent rows do not change, as in the LazyAdam
    of TensorFlow Addons, which this version set does not have.
    """

    def update_step(self, gradient: tf.Tensor | tf.IndexedSlices, variable: tf.Variable) -> None:
        """One step of one variable; the indices of slices must be unique."""
        if not isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable)
            return
        step = tf.cast(self.iterations + 1, variable.dtype)
        rate = tf.cast(self.learning_rate, variable.dtype)
        rate = rate * tf.sqrt(1 - tf.pow(self.beta_2, step)) / (1 - tf.pow(self.beta_1, step))
        index = self._index_dict[self._var_key(variable)]
        first, second = self._momentums[index], self._velocities[index]
        rows, values = gradient.indices, gradient.values
        mean = self.beta_1 * _rows(first, rows) + (1 - self.beta_1) * values
        square = self.beta_2 * _rows(second, rows) + (1 - self.beta_2) * tf.square(values)
        first.scatter_update(tf.IndexedSlices(mean, rows))
        second.scatter_update(tf.IndexedSlices(square, rows))
        change = -rate * mean / (tf.sqrt(square) + self.epsilon)
        variable.scatter_add(tf.IndexedSlices(change, rows))


def _rows(variable: tf.Variable, rows: tf.Tensor) -> tf.Tensor:
    # For a variable of a distribution strategy, `tf.gather` would copy all rows first.
    return tf.raw_ops.ResourceGather(resource=variable.handle, indices=rows, dtype=variable.dtype)


def optimizer_of(training: Training) -> tf.keras.optimizers.Optimizer:
    """The optimizer that the config names, with its learning rate."""
    kinds = {"adam": SparseAdam, "adagrad": tf.keras.optimizers.Adagrad}
    return kinds[training.optimizer](training.effective_learning_rate)

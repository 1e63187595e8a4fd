"""The optimizers that the config names."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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


class _Factors(tf.keras.optimizers.Optimizer):
    """An optimizer whose change of some variables is multiplied by a factor."""

    factors: Mapping[str, float] = MappingProxyType({})

    def update_step(self, gradient: Any, variable: tf.Variable) -> None:
        """One step of one variable."""
        factor = self.factors.get(self._var_key(variable), 1.0)
        before = None if factor == 1.0 else tf.identity(variable)
        super().update_step(gradient, variable)
        if before is not None:
            variable.assign(before + factor * (variable - before))


class _Adam(_Factors, SparseAdam):
    """Adam with factors."""


class _Adagrad(_Factors, tf.keras.optimizers.Adagrad):
    """Adagrad with factors."""


def optimizer_of(
    training: Training, factors: Mapping[str, float] | None = None
) -> tf.keras.optimizers.Optimizer:
    """The optimizer that the config names, with its learning rate.

    `factors` multiply it for some variables, by their unique ids.
    """
    kinds = {"adam": _Adam, "adagrad": _Adagrad}
    optimizer = kinds[training.optimizer](training.effective_learning_rate)
    # TensorFlow would keep a dict in every checkpoint.
    optimizer.factors = MappingProxyType(dict(factors or {}))
    return optimizer

"""Domain checks with one rule: outside, a clear error eagerly and NaN in graphs.

A graph cannot raise a Python error, and an assertion op would not compile under XLA; NaN is the one
answer there that no caller can mistake for a number.
"""

from typing import Any

import tensorflow as tf

# How far beyond an end of its interval, relative to the end, a value may lie by rounding.
SLACK = 1e-5


def float64_within(
    name: str, value: Any, low: float, high: float, *, low_open: bool = False
) -> tf.Tensor:
    """`value` as a float64 tensor, held to an interval; an error calls it `name`.

    A value beyond a closed end by rounding only (`SLACK`) counts as that end: float32 vectors of
    unit norm have cosines of 1 + 1e-7. With `low_open`, `low` itself is outside. In a graph, values
    outside become NaN.

    Raises:
      ValueError: Eagerly, when any element is outside.
    """
    value = to_float64(value)
    above = value > low if low_open else value >= low - SLACK * abs(low)
    inside = above & (value <= high + SLACK * abs(high))
    held = tf.clip_by_value(value, low, high)
    if not tf.executing_eagerly():
        return tf.where(inside, held, tf.constant(float("nan"), tf.float64))
    if not tf.reduce_all(inside):
        bounds = f"{'(' if low_open else '['}{low:g}, {high:g}]"
        received = tf.reshape(value, [-1]).numpy()
        outside = received[~tf.reshape(inside, [-1]).numpy()]
        share = f" ({outside.size} of {received.size} values are outside)"
        raise ValueError(
            f"{name} must be in {bounds}. Received: {outside[0]:g}"
            f"{share if received.size > 1 else ''}."
        )
    return held


def to_float64(value: Any) -> tf.Tensor:
    """`value` as a float64 tensor; Python numbers keep all their digits."""
    if tf.is_tensor(value) or isinstance(value, tf.Variable):
        return tf.cast(value, tf.float64)
    return tf.cast(tf.convert_to_tensor(value, dtype_hint=tf.float64), tf.float64)


def result_dtype(*values: Any) -> tf.DType:
    """The widest floating dtype among tensors and arrays, at least float32.

    Python numbers do not count: they take the dtype of the tensors they meet.
    """
    dtypes = [tf.as_dtype(v.dtype) for v in values if hasattr(v, "dtype")]
    return tf.float64 if tf.float64 in dtypes else tf.float32

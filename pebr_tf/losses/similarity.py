"""Cosines that are safe at the ends of their range and in half precision."""

from typing import Any

import tensorflow as tf


def compute_dtype(tensor: tf.Tensor) -> tf.DType:
    """Float64 for float64 input, else float32.

    Half precision will not do: float16 rounds a cosine by up to 5e-4, which a temperature of .002
    turns into a quarter of a logit.
    """
    return tf.float64 if tensor.dtype == tf.float64 else tf.float32


def unit_vectors(vectors: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Vectors [B, n] cast to `dtype` and scaled to length 1.

    Towers already return unit vectors, but a float16 tower is off by 1e-3; a second scaling costs
    next to nothing and leaves the gradient of a unit vector as it is.
    """
    return tf.math.l2_normalize(tf.cast(vectors, dtype), axis=-1)


def positive_cosines(query_vectors: Any, item_vectors: Any) -> tf.Tensor:
    """[B] cosines in [-1, 1] of query vectors [B, n] with the vectors [B, n] of their own items."""
    query_vectors = tf.convert_to_tensor(query_vectors)
    dtype = compute_dtype(query_vectors)
    products = unit_vectors(query_vectors, dtype) * unit_vectors(item_vectors, dtype)
    return tf.clip_by_value(tf.reduce_sum(products, axis=-1), -1.0, 1.0)


def per_query(value: Any, cosines: tf.Tensor) -> tf.Tensor:
    """A scalar, or a [B] vector as [B, 1], in the dtype of the [B, B] cosines it will meet."""
    # A cast would take a Python number through float32.
    if hasattr(value, "dtype"):
        value = tf.cast(value, cosines.dtype)
    else:
        value = tf.convert_to_tensor(value, cosines.dtype)
    return value if value.shape.rank == 0 else value[:, tf.newaxis]

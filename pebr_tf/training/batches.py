"""Batches of pairs from files of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pebr_tf.config import Training
from pebr_tf.models.two_tower import VALIDATION_PART, is_validation

Batch = dict[str, Any]
# From serialized examples [B] to what the towers take.
Parse = Callable[[tf.Tensor], Batch]

# Batches that validation sees at most.
VALIDATION_BATCHES = 8


def training_batches(
    files: Sequence[str], parse: Parse, training: Training, begin: int = 0
) -> tf.data.Dataset:
    """Shuffled batches without end, of `training.batch_size` pairs each.

    Args:
      files: Gzipped TFRecords.
      parse: Makes a batch of serialized examples.
      training: Batch size, shuffle buffer and seed.
      begin: The step that training goes on from: it gets another order than it had before.
    """
    seed = training.seed + begin
    records = _records(tf.data.Dataset.from_tensor_slices(list(files)).shuffle(len(files), seed))
    return (
        records.shuffle(training.shuffle_buffer, seed)
        .repeat()
        .batch(training.batch_size, drop_remainder=True)
        .map(parse, tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def validation_batches(files: Sequence[str], parse: Parse, training: Training) -> list[Batch]:
    """The pairs that training leaves out, in batches; none if there are too few for one."""
    wanted = VALIDATION_BATCHES * training.batch_size
    records = _records(tf.data.Dataset.from_tensor_slices(list(files)))
    examples = (
        records.take(wanted * VALIDATION_PART)
        .batch(8_192)
        .map(lambda examples: _validation_part(parse(examples)))
        .prefetch(1)
    )
    parts = list(examples)
    if not parts:
        return []
    joined = {name: tf.concat([part[name] for part in parts], axis=0) for name in parts[0]}
    size = min(training.batch_size, int(joined["clicks"].shape[0]))
    if size < 2:
        return []
    count = min(int(joined["clicks"].shape[0]) // size, VALIDATION_BATCHES)
    return [
        {name: values[i * size : (i + 1) * size] for name, values in joined.items()}
        for i in range(count)
    ]


def _records(files: tf.data.Dataset) -> tf.data.Dataset:
    return files.interleave(
        lambda path: tf.data.TFRecordDataset(path, "GZIP"), cycle_length=4, block_length=64
    )


def _validation_part(batch: Batch) -> Batch:
    places = tf.where(is_validation(batch))[:, 0]
    return {name: tf.gather(values, places) for name, values in batch.items()}

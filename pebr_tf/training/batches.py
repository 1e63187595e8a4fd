"""Batches of pairs from files of examples."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pebr_tf.config import Training
from pebr_tf.distributions.law import traced_as_is
from pebr_tf.models.two_tower import VALIDATION_PART, is_validation

Batch = dict[str, Any]
# From serialized examples [B] to the inputs of the towers.
Parse = Callable[[tf.Tensor], Batch]

# The most batches of a validation.
VALIDATION_BATCHES = 8


def training_batches(
    files: Sequence[str],
    parse: Parse,
    training: Training,
    begin: int = 0,
    context: tf.distribute.InputContext | None = None,
) -> tf.data.Dataset:
    """Endless shuffled batches of `training.batch_size` pairs over all replicas.

    `parse` is traced without AutoGraph, which would convert the whole graph of Transform.

    Every worker reads all pairs in the same order and parses its own. Reading is cheap, and so a
    step has the same pairs as on one device. The files, gzipped TFRecords, have the same order on
    every worker. With a `context`, the parts of this worker's replicas come in turn.

    `begin`, the step that training resumes from, changes the order of the pairs.
    """
    seed = training.seed + begin
    records = _records(tf.data.Dataset.from_tensor_slices(list(files)).shuffle(len(files), seed))
    examples = (
        records.shuffle(training.shuffle_buffer, seed)
        .repeat()
        .batch(training.batch_size, drop_remainder=True)
    )
    if context is not None and context.num_replicas_in_sync > 1:
        examples = _own_parts(examples, context)
    return examples.map(traced_as_is(parse), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def validation_batches(files: Sequence[str], parse: Parse, training: Training) -> list[Batch]:
    """The pairs that training leaves out, in batches; empty if there are too few."""
    wanted = VALIDATION_BATCHES * training.batch_size
    records = _records(tf.data.Dataset.from_tensor_slices(list(files)))
    examples = (
        records.take(wanted * VALIDATION_PART)
        .batch(8_192)
        .map(traced_as_is(lambda examples: _validation_part(parse(examples))))
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


def _own_parts(batches: tf.data.Dataset, context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Of each batch the parts of this worker's replicas, one after the other."""
    replicas = context.num_replicas_in_sync
    count = replicas // context.num_input_pipelines
    first = count * context.input_pipeline_id
    parts = batches.map(lambda batch: tf.reshape(batch, [replicas, -1])[first : first + count])
    return parts.unbatch()


def _records(files: tf.data.Dataset) -> tf.data.Dataset:
    return files.interleave(
        lambda path: tf.data.TFRecordDataset(path, "GZIP"), cycle_length=4, block_length=64
    )


def _validation_part(batch: Batch) -> Batch:
    rows = tf.where(is_validation(batch))[:, 0]
    return {name: tf.gather(values, rows) for name, values in batch.items()}

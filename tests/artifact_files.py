"""Artifacts, and files of Examples, as TFX leaves them."""

import numpy as np
import pyarrow as pa
import tensorflow as tf
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import Examples

from pebr_tf.data.sampled_pairs import SampledPairs
from pebr_tf.data.splits import NAMES


def artifact(kind, uri, splits=(), number=3):
    result = kind()
    result.uri, result.id = str(uri), number
    if splits:
        result.split_names = artifact_utils.encode_split_names(list(splits))
    return result


def example(**columns):
    """A serialized example; a column is a text, a whole number or a float."""
    result = tf.train.Example()
    for name, value in columns.items():
        feature = result.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif isinstance(value, int):
            feature.int64_list.value.append(value)
        else:
            feature.float_list.value.append(value)
    return result.SerializeToString()


def write_pairs(uri, **splits):
    """Writes the rows (query, item, clicks) of each split as ingestion samples them."""
    parts = []
    for split, rows in splits.items():
        columns = zip(*rows, strict=True) if rows else ([], [], [])
        arrays = map(pa.array, columns, (pa.string(), pa.string(), pa.int64()))
        batch = pa.RecordBatch.from_arrays(list(arrays), ["query", "item_id", "clicks"])
        parts.append(SampledPairs.of(batch, np.full(len(rows), NAMES.index(split), np.int8)))
    SampledPairs.merged(parts).save(uri)
    return artifact(Examples, uri, splits)


def write_examples(uri, files=2, **splits):
    """Writes the rows of each split to some files."""
    for split, rows in splits.items():
        folder = uri / f"Split-{split}"
        folder.mkdir(parents=True)
        for file in range(files):
            path = folder / f"data_tfrecord-{file:05}-of-{files:05}.gz"
            with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
                for row in rows[file::files]:
                    writer.write(example(**row))
    return artifact(Examples, uri, splits)

"""The files of Examples: gzip TFRecords, one folder per split."""

import os
from collections.abc import Iterator

import tensorflow as tf
from tfx.dsl.io import fileio
from tfx.types import Artifact, artifact_utils

# Examples per batch, as many as the towers embed at once.
BATCH = 2_048


def split_files(examples: Artifact, split: str) -> list[str]:
    """The files of a split, in order; none if the split does not exist."""
    if split not in artifact_utils.decode_split_names(examples.split_names):
        return []
    return sorted(fileio.glob(os.path.join(artifact_utils.get_split_uri([examples], split), "*")))


def read_batches(files: str | list[str]) -> Iterator[list[bytes]]:
    """Batches of serialized examples.

    TensorFlow reads them because Beam's reader is a Python loop over records.
    """
    for batch in tf.data.TFRecordDataset(files, "GZIP").batch(BATCH):
        yield batch.numpy().tolist()

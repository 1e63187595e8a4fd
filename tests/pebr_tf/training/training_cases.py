"""Small files of pairs, and models that learn them in seconds."""

import numpy as np
import tensorflow as tf

from pebr_tf.config import Config
from pebr_tf.models.two_tower import TwoTower

WORDS = 30
SMALL = Config().replace_all(
    {
        "features.oov_buckets": 2,
        "towers.dimension": 8,
        "towers.token_dimension": 8,
        "towers.hidden_layers": [],
        "towers.tau_hidden_layers": [4],
        "training.batch_size": 16,
        "training.shuffle_buffer": 200,
    }
)
INTEGERS = ("query_id", "item_hash")
FLOATS = ("clicks", "query_frequency", "item_frequency")


def small(**changes):
    """SMALL with changes such as training__steps=3."""
    return SMALL.replace_all({name.replace("__", "."): v for name, v in changes.items()})


def write_pairs(folder, count, files=1, seed=0):
    """Paths of gzipped TFRecords with `count` pairs of a query and an item of the same words."""
    generator = np.random.default_rng(seed)
    paths = []
    for number, part in enumerate(np.array_split(np.arange(count), files)):
        path = str(folder / f"pairs-{number}.gz")
        with tf.io.TFRecordWriter(path, "GZIP") as writer:
            for pair in part:
                writer.write(example(int(pair), generator))
        paths.append(path)
    return paths


def example(pair, generator):
    words = generator.integers(WORDS, size=2)
    values = {
        "query_tokens": words,
        "item_title_tokens": [words[0], generator.integers(WORDS)],
        "query_id": [1000 + pair],
        "item_hash": [7 * pair],
        "clicks": [float(1 + pair % 3)],
        "query_frequency": [2.0],
        "item_frequency": [3.0],
    }
    feature = {}
    for name, value in values.items():
        if name in FLOATS:
            feature[name] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
        else:
            feature[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def parse(examples):
    spec = {
        **{name: tf.io.FixedLenFeature([], tf.int64) for name in INTEGERS},
        **{name: tf.io.FixedLenFeature([], tf.float32) for name in FLOATS},
        "query_tokens": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
        "item_title_tokens": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    }
    return tf.io.parse_example(examples, spec)


def model_of(config, batch):
    tf.keras.utils.set_random_seed(config.training.seed)
    model = TwoTower(config, {"tokens": WORDS})
    model.encode_query(batch)
    model.encode_item(batch)
    return model

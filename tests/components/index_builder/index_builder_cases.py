"""Catalogues, clicks and small towers for the tests of IndexBuilder."""

import atexit
import functools
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from artifact_files import artifact, write_examples
from tfx.types import Channel
from tfx.types.standard_artifacts import Examples, Model

from components.artifacts import RetrievalIndex
from components.index_builder.component import IndexBuilder
from components.index_builder.executor import IndexBuilderExecutor
from pebr_tf.config import Config

DIMENSION = 16
BUCKETS = 512


class SmallTowers(tf.Module):
    """Sums of random vectors of hashed character bigrams; a price pulls along one direction."""

    def __init__(self):
        super().__init__()
        table = np.random.default_rng(0).normal(size=(BUCKETS, DIMENSION))
        self.table = tf.Variable(table, dtype=tf.float32)

    def _sum(self, text):
        characters = tf.strings.unicode_split(tf.strings.join(["^", text, "$"]), "UTF-8")
        tokens = tf.strings.ngrams(characters, 2)
        buckets = tf.ragged.map_flat_values(tf.strings.to_hash_bucket_fast, tokens, BUCKETS)
        return tf.reduce_sum(tf.gather(self.table, buckets), axis=1)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string, "query")])
    def query(self, query):
        vectors = tf.math.l2_normalize(self._sum(query), axis=1)
        # Nothing here reads the others.
        others = ("tau", "stratum", "frequency", "known_share")
        return {"embedding": vectors, **dict.fromkeys(others, vectors[:, 0])}

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([None], tf.string, "title"),
            tf.TensorSpec([None], tf.float32, "price"),
        ],
    )
    def item(self, title, price):
        vectors = self._sum(title) + price[:, None] * self.table[0]
        vectors = tf.math.l2_normalize(vectors, axis=1)
        # Titles whose vectors are not finite or zero.
        vectors = tf.where((title == "broken")[:, None], np.nan, vectors)
        return {"embedding": tf.where((title == "nothing")[:, None], 0.0, vectors)}


TOWERS = SmallTowers()


@functools.lru_cache
def _saved_towers(signatures):
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    tf.saved_model.save(TOWERS, folder, {name: getattr(TOWERS, name) for name in signatures})
    return folder


def save_towers(folder, signatures=("query", "item")):
    shutil.copytree(_saved_towers(tuple(signatures)), folder / "model" / "Format-Serving")
    return artifact(Model, folder / "model")


def item(item_id, title, price=0.0, **more):
    return {"item_id": item_id, "title": title, "price": price, **more}


def inputs(folder, items, queries=(), **towers):
    clicks = [{"query": query, "item_id": "a", "clicks": 1} for query in queries]
    return {
        "catalogue": [write_examples(folder / "catalogue", items=items)],
        "model": [save_towers(folder, **towers)],
        "examples": [write_examples(folder / "clicks", calibrate=clicks)],
    }


def build(folder, given, config=None, fit=False):
    """Runs Do into `folder`/index/7 as TFX does; returns that folder."""
    uri = folder / "index" / "7"
    uri.mkdir(parents=True, exist_ok=True)
    outputs = {"index": [artifact(RetrievalIndex, uri)]}
    IndexBuilderExecutor().Do(given, outputs, properties(config or Config(), fit))
    return uri


def properties(config, fit=False):
    kinds = {"catalogue": Examples, "model": Model, "examples": Examples}
    channels = {name: Channel(type=kind) for name, kind in kinds.items()}
    return IndexBuilder(**channels, config=config, source="hash", fit=fit).exec_properties

"""A tiny catalogue, towers that hash characters, a made-up law and a made-up calibration."""

import shutil

import numpy as np
import pyarrow as pa
import tensorflow as tf
from evaluation_example import with_queries

from pebr_tf.config import Config
from pebr_tf.cutoff.calibration import Calibration, StratumRecall
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.distributions.query_law import initial_weights
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.release import ReleaseSources
from pebr_tf.release.towers import TowersDescription
from pebr_tf.retrieval import build_index
from serving.signatures import HeldItems, export_query_model

DIMENSION = 8
BUCKETS = 64
STRATUM_OF = {"red phone": 0, "phone": 1}
COLOURS = ("red", "blue", "black", "white", "green")
CONFIG = Config().replace_all(
    {"cutoff.limit": 150, "cutoff.probe_size": 20, "evaluation.average_k": [5, 50]}
)
DESCRIPTION = TowersDescription(
    family="beta",
    dimension=DIMENSION,
    loss="beta_nce",
    steps=1,
    config={},
)
THINGS = ("phone", "phone case", "tablet", "laptop", "laptop bag", "headset", "charger", "cable")


class TinyTowers(tf.Module):
    """Sums of hashed character pairs, one table for queries and items; strata by vocabulary."""

    def __init__(self, vocabulary):
        super().__init__()
        table = np.random.default_rng(0).normal(size=(BUCKETS, DIMENSION))
        self.table = tf.Variable(table, dtype=tf.float32)
        initializer = tf.lookup.TextFileInitializer(
            str(vocabulary), tf.string, 0, tf.int64, 1, delimiter="\t"
        )
        self.strata = tf.lookup.StaticHashTable(initializer, default_value=2)

    def embed(self, text):
        pairs = tf.strings.ngrams(tf.strings.unicode_split(text, "UTF-8"), 2, separator="")
        tokens = tf.strings.to_hash_bucket_fast(pairs, BUCKETS)
        return tf.math.l2_normalize(
            tf.reduce_sum(tf.gather(self.table, tokens), axis=1) + 1e-6, axis=1
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="query")], autograph=False)
    def query(self, query):
        embedding = self.embed(query)
        stratum = self.strata.lookup(query)
        return {
            "embedding": embedding,
            "tau": 0.1 + 0.05 * embedding[:, 0],
            "frequency": tf.cast(2 - stratum, tf.float32),
            "stratum": stratum,
            # No query of the log has a double q.
            "known_share": 1 - tf.cast(tf.strings.regex_full_match(query, ".*qq.*"), tf.float32),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="title")], autograph=False)
    def item(self, title):
        return {"embedding": self.embed(title)}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="examples")], autograph=False
    )
    def serialized_examples(self, examples):
        spec = {name: tf.io.FixedLenFeature([], tf.string, "") for name in ("query", "title")}
        parsed = tf.io.parse_example(examples, spec)
        query = self.query(parsed["query"])
        query["query_embedding"] = query.pop("embedding")
        return {**query, "item_embedding": self.embed(parsed["title"])}


def write_towers(directory, vocabulary_folder):
    """Saves towers whose vocabulary file is gone afterwards; gives the module back."""
    vocabulary_folder.mkdir(parents=True)
    vocabulary = vocabulary_folder / "strata.tsv"
    lines = [f"{query}\t{stratum}\n" for query, stratum in STRATUM_OF.items()]
    vocabulary.write_text("".join(lines))
    towers = TinyTowers(vocabulary)
    signatures = {name: getattr(towers, name) for name in ("query", "item", "serialized_examples")}
    tf.saved_model.save(towers, str(directory), signatures=signatures)
    DESCRIPTION.save(directory)
    shutil.rmtree(vocabulary_folder)
    return towers


def titles():
    """[200] titles, all different."""
    return [f"{c} {t} {n}" for c in COLOURS for t in THINGS for n in range(5)]


def item_ids():
    """[200] ids, not in the order of the titles."""
    return np.array([f"item-{(number * 37) % 200:03}" for number in range(200)])


def item_vectors(towers):
    """[200, 8] unit vectors of the items."""
    return towers.item(tf.constant(titles()))["embedding"].numpy()


def write_parts(folder, towers_directory, towers, config=CONFIG, examples=None):
    """All that a release is made of, as the components leave it; `examples` are queries."""
    index, vectors, ids = folder / "index", item_vectors(towers), item_ids()
    build_index(index / "index", vectors, ids)
    items = pa.table({"item_id": ids.tolist(), "title": titles()}).sort_by("item_id")
    moments = EmbeddedCatalogue.save(index, items, vectors[np.argsort(ids)]).moments()
    cutoff = folder / "cutoff"
    cutoff.mkdir()
    calibration().save(cutoff)
    held = HeldItems(vectors, len(vectors), moments)
    export_query_model(towers_directory, cutoff / "query_model", calibration(), held, config)
    evaluation = folder / "evaluation"
    evaluation.mkdir()
    with_queries(*(examples or ())).save(evaluation)
    (evaluation / "report.html").write_text("<p>report</p>")
    return ReleaseSources(cutoff, index, evaluation, config, span=3)


def calibration(policy="level", **changes):
    """A made-up calibration: head and torso with offsets, the tail with the map of all."""

    def recall(shift):
        asked = np.array([0.2, 0.5, 0.75, 0.9, 0.95])
        return KnobMap(asked, np.linspace(3, -3, 5, dtype="f4") + shift, 100)

    values = {
        "policy": policy,
        "family": "beta",
        "level_temperature": 0.6,
        "floor": 1,
        "limit": 150,
        "queries": 300,
        "folds": 0,
        "default_knob": "recall",
        "default_value": 0.9,
        "default_items": 50.0,
        "recall": recall(np.float32(0)),
        "errors": [0.01] * 5,
        "strata": {
            "head": StratumRecall(100, -1.0, [0.1, 0.4, 0.77, 0.9, 0.9]),
            "torso": StratumRecall(100, 0.5, [0.2, 0.5, 0.75, 0.9, 0.95]),
        },
        "budget": KnobMap(np.array([1.0, 10, 100]), np.array([3.0, 0, -4], "f4"), 300),
        "signature": recall(np.float32(0.2)),
        "share": KnobMap(np.array([0.0, 0.6, 1]), np.array([1, 0.5, 0], "f4"), 300),
        "least_known": 0.5,
        "law": learned_law(),
    }
    return Calibration(**{**values, **changes})


def learned_law():
    """A law that tells queries apart."""
    generator = np.random.default_rng(2)
    return initial_weights()._replace(
        linear=generator.normal(size=(3, 2)) / 4, noise=np.array([-2.0, 0.5])
    )

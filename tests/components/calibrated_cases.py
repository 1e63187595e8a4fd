"""A small world on disk: clicks in three splits, towers that look vectors up, an index."""

import numpy as np
import pyarrow as pa
import tensorflow as tf
from artifact_files import artifact, write_pairs
from cutoff_worlds import unit
from tfx.types import Channel
from tfx.types.standard_artifacts import Model

from components.artifacts import CutoffModel, RetrievalIndex
from components.cutoff_calibrator.component import CutoffCalibrator
from components.cutoff_calibrator.executor import CutoffCalibratorExecutor
from pebr_tf.config import Config
from pebr_tf.data.log_size import LogSize
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.towers import TowersDescription
from pebr_tf.retrieval import build_index

QUERIES, ITEMS, DIMENSION = 300, 400, 8
CONFIG = Config().replace_all(
    {
        "cutoff.min_calibration_queries": 100,
        "cutoff.default_value": 0.7,
        "cutoff.level_temperature": 0.6,
        "cutoff.limit": 300,
        "evaluation.average_k": [5, 20, 50],
    }
)


class LookupTowers(tf.Module):
    """The query "q7" has row 7 of a table, as the title "n7"; tail, torso and head take turns."""

    def __init__(self, vectors, tau, items):
        super().__init__()
        self.vectors, self.tau = tf.Variable(vectors), tf.Variable(tau)
        self.items = tf.Variable(items)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string, "query")])
    def query(self, query):
        rows = tf.strings.to_number(tf.strings.substr(query, 1, -1), tf.int64)
        return {
            "embedding": tf.gather(self.vectors, rows),
            "tau": tf.gather(self.tau, rows),
            "frequency": tf.cast(rows, tf.float32),
            "stratum": rows // 2 % 3,
            "known_share": tf.ones_like(rows, tf.float32),
        }

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string, "title")])
    def item(self, title):
        rows = tf.strings.to_number(tf.strings.substr(title, 1, -1), tf.int64)
        return {"embedding": tf.gather(self.items, rows)}

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def serialized_examples(self, examples):
        spec = {"query": tf.io.FixedLenFeature([], tf.string)}
        found = self.query(tf.io.parse_example(examples, spec)["query"])
        vectors = found.pop("embedding")
        return {**found, "query_embedding": vectors, "item_embedding": vectors}


class CalibratedWorld:
    def __init__(self, seed=0):
        generator = np.random.default_rng(seed)
        centres = generator.normal(size=(8, DIMENSION))
        self.items = unit(
            centres[generator.integers(8, size=ITEMS)] + generator.normal(size=(ITEMS, DIMENSION))
        )
        self.queries = unit(
            centres[generator.integers(8, size=QUERIES)]
            + 0.5 * generator.normal(size=(QUERIES, DIMENSION))
        )
        self.tau = (0.08 * np.exp(self.queries[:, 0])).astype(np.float32)
        # Ids in another order than the vectors, and one that UTF-8 needs several bytes for.
        self.ids = np.array([f"item-{i * 7 % ITEMS:03}" for i in range(ITEMS - 1)] + ["华为"])
        logits = np.log((1 + self.queries @ self.items.T) / 2) / self.tau[:, None]
        chance = np.exp(logits - logits.max(axis=1, keepdims=True))
        self.clicks = {"train": [], "calibrate": [], "test": []}
        for row in range(QUERIES):
            chosen = generator.choice(ITEMS, 12, replace=False, p=chance[row] / chance[row].sum())
            held_out = "calibrate" if row % 2 else "test"
            for item in chosen[:8]:
                self.clicks["train"].append((f"q{row}", self.ids[item], 2))
            for item in chosen[8:]:
                # A pair twice, and one without a click.
                self.clicks[held_out] += [(f"q{row}", self.ids[item], 1)] * 2
            self.clicks[held_out].append((f"q{row}", self.ids[chosen[0]], 0))


def write_clicks(folder, clicks):
    queries = {query for query, *_ in clicks["train"]}
    LogSize(len(clicks["train"]), len(queries), ITEMS).save(folder)
    return write_pairs(folder, **clicks)


def describe(path, **changes):
    """Writes the description of towers whose SavedModel is at `path`."""
    values = {"family": "beta", "dimension": DIMENSION, "loss": "beta_nce"}
    values |= {"steps": 7, "config": {"loss": {"log_q": False}}}
    TowersDescription(**{**values, **changes}).save(path)


def save_towers(folder, queries, tau, items, **description):
    path = folder / "Format-Serving"
    towers = LookupTowers(queries, tau, items)
    names = ("query", "item", "serialized_examples")
    tf.saved_model.save(towers, str(path), {name: getattr(towers, name) for name in names})
    describe(path, **description)
    return artifact(Model, folder)


def write_inputs(folder, world):
    index = folder / "index"
    build_index(index / "index", world.items, world.ids)
    EmbeddedCatalogue.save(index, pa.table({"item_id": world.ids}), world.items)
    return {
        "examples": [write_clicks(folder / "examples", world.clicks)],
        "model": [save_towers(folder / "model", world.queries, world.tau, world.items)],
        "index": [artifact(RetrievalIndex, index)],
    }


def channels(given):
    return {name: Channel(type=type(artifacts[0])) for name, artifacts in given.items()}


def calibrate(folder, given, config=CONFIG):
    """Runs the component's executor into `folder`/cutoff as TFX would; returns that folder."""
    component = CutoffCalibrator(**channels(given), config=config, source="abc")
    uri = folder / "cutoff"
    uri.mkdir()
    CutoffCalibratorExecutor().Do(
        given, {"cutoff": [artifact(CutoffModel, uri)]}, component.exec_properties
    )
    return uri

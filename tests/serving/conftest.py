"""The tiny release: its towers, vectors, parts, and the whole of it loaded."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from tiny_release import calibration, level_head, titles, write_towers

from pebr_tf.config import Config
from pebr_tf.retrieval import build_index
from serving.moments import Moments
from serving.release import Parts, write_release
from serving.retriever import Retriever
from serving.signatures import export_query_model


@pytest.fixture(scope="session")
def config():
    """The configuration of the tiny release."""
    return Config().replace_all(
        {"cutoff.cap": 150, "cutoff.probe_size": 20, "evaluation.average_k": [5, 50]}
    )


@pytest.fixture(scope="session")
def tower_files(tmp_path_factory):
    """A folder with the towers, and the module that was saved there."""
    folder = tmp_path_factory.mktemp("towers")
    return folder / "model", write_towers(folder / "model", folder / "vocabulary")


@pytest.fixture(scope="session")
def vectors(tower_files):
    """[200, 8] unit vectors of the items."""
    return tower_files[1].item(tf.constant(titles()))["embedding"].numpy()


@pytest.fixture(scope="session")
def item_ids():
    """[200] ids, not in the order of the titles."""
    return np.array([f"item-{(number * 37) % 200:03}" for number in range(200)])


@pytest.fixture(scope="session")
def moments(vectors):
    """Mean and covariance of the item vectors."""
    return Moments(vectors.mean(axis=0), np.cov(vectors.T))


@pytest.fixture(scope="session")
def parts(tmp_path_factory, config, tower_files, vectors, item_ids, moments):
    """All that a release is made of, as the components leave it."""
    folder = tmp_path_factory.mktemp("parts")
    index = folder / "index"
    build_index(index / "index", vectors, item_ids)
    columns = {"item_id": item_ids.tolist(), "title": titles()}
    pq.write_table(pa.table(columns).sort_by("item_id"), index / "payload.parquet")
    np.savez(index / "moments.npz", mean=moments.mean, covariance=moments.covariance)
    np.save(index / "vectors.npy", vectors)
    cutoff = folder / "cutoff"
    cutoff.mkdir()
    (cutoff / "cutoff.json").write_text(calibration().to_json())
    export_query_model(
        tower_files[0], cutoff / "query_model", calibration(), level_head(), moments, config
    )
    evaluation = folder / "evaluation"
    evaluation.mkdir()
    (evaluation / "evaluation.json").write_text('{"blessed": true}')
    (evaluation / "report.html").write_text("<p>report</p>")
    return Parts(cutoff, index, evaluation, config, span=3)


@pytest.fixture(scope="session")
def releases(tmp_path_factory, parts):
    """A folder with one release; do not write to it."""
    folder = tmp_path_factory.mktemp("releases")
    write_release(folder, parts)
    return folder


@pytest.fixture(scope="session")
def retriever(releases):
    """The loaded release."""
    (directory,) = releases.iterdir()
    return Retriever.load(directory)

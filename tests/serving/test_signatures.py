"""The query model: what its signatures say, and that TensorFlow alone can load it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats
from tiny_release import DESCRIPTION, DIMENSION, calibration, level_head, write_towers

from pebr_tf.config import Cutoff
from pebr_tf.errors import UserError
from pebr_tf.release.catalogue import Moments
from serving.signatures import QueryModel, export_query_model, interpolate, recall_table

QUERIES = ["red phone", "phone", "blue laptop bag", "手机"]
OUTPUTS = {
    *("embedding", "tau", "alpha", "beta", "background_alpha", "background_beta"),
    *("level", "threshold", "stratum", "frequency"),
}


@pytest.fixture(scope="module")
def model(parts):
    return tf.saved_model.load(str(parts.cutoff / "query_model"))


@pytest.fixture(scope="module")
def encoded(model):
    outputs = model.signatures["serving_default"](query=tf.constant(QUERIES))
    return {name: value.numpy() for name, value in outputs.items()}


def threshold_of(cutoffs, encoded):
    """The equation of docs/maths.md, section 5, in float64."""
    exponent = encoded["tau"].astype(float) * (cutoffs + encoded["level"].astype(float))
    return np.clip(2 * np.exp(exponent) - 1, -1, 1)


def test_says_all_there_is_to_know_of_a_query(model, encoded, tower_files, moments, vectors):
    towers = tower_files[1].query(tf.constant(QUERIES))
    assert set(model.signatures) == {"serving_default", "query_at", "item", "serialized_examples"}
    assert set(encoded) == OUTPUTS
    for name in ("embedding", "tau", "frequency", "stratum"):
        np.testing.assert_array_equal(encoded[name], towers[name].numpy())
    assert encoded["stratum"].tolist() == [0, 1, 2, 2]
    assert encoded["stratum"].dtype == np.int64
    np.testing.assert_allclose(encoded["alpha"], 1 + 1 / encoded["tau"], rtol=1e-6)
    assert (encoded["beta"] == 1).all()
    # The background has the mean and variance that the cosines of all items have.
    background = stats.beta(encoded["background_alpha"], encoded["background_beta"])
    cosines = encoded["embedding"] @ vectors.T
    np.testing.assert_allclose(2 * background.mean() - 1, cosines.mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(4 * background.var(), cosines.var(axis=1), atol=1e-4)
    levels = level_head()(towers["embedding"], towers["tau"]).numpy()
    np.testing.assert_allclose(encoded["level"], levels, rtol=1e-6)
    assert np.ptp(levels) > 0.1
    # At .9: head -4 (the last point of its map), torso -1.5 + .5, the rest -1.5.
    wanted = threshold_of(np.array([-4, -1, -1.5, -1.5]), encoded)
    np.testing.assert_allclose(encoded["threshold"], wanted, atol=1e-6)
    assert ((wanted > -1) & (wanted < 1)).all()
    empty = model.signatures["serving_default"](query=tf.constant([], tf.string))
    assert empty["embedding"].shape == [0, DIMENSION]


def test_a_share_goes_through_the_map_of_the_stratum(model, encoded):
    shares = np.array([0.4, 0.8, 0.95, 0.999], np.float32)
    outputs = model.signatures["query_at"](query=tf.constant(QUERIES), cutoff=tf.constant(shares))
    assert set(outputs) == OUTPUTS
    head, torso = np.float64(0.0), 0.5 - 1.5 * (0.05 / 0.15)
    wanted = threshold_of(np.array([head, torso, -3, -3]), encoded)
    np.testing.assert_allclose(outputs["threshold"].numpy(), wanted, atol=1e-6)
    np.testing.assert_array_equal(outputs["level"].numpy(), encoded["level"])
    outside = tf.constant([0.0, 1.0, -0.5, np.nan])
    outputs = model.signatures["query_at"](query=tf.constant(QUERIES), cutoff=outside)
    assert np.isnan(outputs["threshold"].numpy()).all()


def test_items_and_serialized_examples(model, encoded, tower_files):
    title = tf.constant(["red phone 3", "white cable 1"])
    wanted = tower_files[1].item(title)["embedding"].numpy()
    item = model.signatures["item"](title=title)
    np.testing.assert_array_equal(item["embedding"].numpy(), wanted)
    features = {"query": b"phone", "title": b"white cable 1"}
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
                for name, value in features.items()
            }
        )
    )
    outputs = model.signatures["serialized_examples"](
        examples=tf.constant([example.SerializeToString()])
    )
    np.testing.assert_array_equal(outputs["item_embedding"].numpy(), wanted[1:])
    np.testing.assert_array_equal(outputs["query_embedding"].numpy(), encoded["embedding"][1:2])
    np.testing.assert_allclose(outputs["threshold"].numpy(), encoded["threshold"][1:2], atol=1e-6)


@pytest.mark.slow
def test_tensorflow_alone_loads_it_without_the_towers_folder(tmp_path, moments, config):
    write_towers(tmp_path / "towers", tmp_path / "vocabulary")
    export_query_model(
        tmp_path / "towers", tmp_path / "model", calibration(), level_head(), moments, config
    )
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    wanted = loaded.signatures["serving_default"](query=tf.constant(QUERIES))
    shutil.rmtree(tmp_path / "towers")
    (tmp_path / "model").rename(tmp_path / "moved")
    program = (
        "import json, sys\n"
        "import tensorflow as tf\n"
        "model = tf.saved_model.load(sys.argv[1])\n"
        "outputs = model.signatures['serving_default'](query=tf.constant(sys.argv[2:]))\n"
        "ours = {'pebr_tf', 'tensorflow_probability', 'tf_keras'} & set(sys.modules)\n"
        "assert not ours, ours\n"
        "print(json.dumps({name: value.numpy().tolist() for name, value in outputs.items()}))\n"
    )
    clean = {name: value for name, value in os.environ.items() if "KERAS" not in name}
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "moved", *QUERIES],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean,
    )
    assert done.returncode == 0, done.stderr
    received = json.loads(done.stdout.splitlines()[-1])
    assert set(received) == OUTPUTS
    for name, value in wanted.items():
        np.testing.assert_allclose(received[name], value.numpy(), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("policy", "family", "knob", "wanted"),
    [
        # Cut-offs of the torso: -1 at a share of .9, .5 at .75.
        ("cdf", "beta", ("recall", 0.9), lambda tau: 2 * np.exp(-tau) - 1),
        ("cdf", "exponential", ("recall", 0.9), lambda tau: 1 - tau),
        ("score", "beta", ("recall", 0.75), lambda tau: 0 * tau + 0.5),
        ("gap", "beta", ("recall", 0.9), lambda tau: 0 * tau - 1),
        ("nucleus", "beta", ("recall", 0.9), lambda tau: 0 * tau - 1),
        ("level", "beta", ("top_k", 10), lambda tau: 0 * tau - 1),
        ("level", "beta", ("score", 0.25), lambda tau: 0 * tau + 0.25),
        ("level_head", "beta", ("budget", 10), lambda tau: 2 * np.exp(-5 * tau) - 1),
    ],
)
def test_every_policy_and_knob_gives_a_threshold(
    tower_files, moments, policy, family, knob, wanted
):
    model = QueryModel(
        tf.saved_model.load(str(tower_files[0])),
        replace(DESCRIPTION, convention="paper", delta_beta=0.5),
        calibration(policy, family=family),
        Cutoff(default_knob=knob[0], default_value=knob[1]),
        _constant_head() if policy == "level_head" else None,
        moments,
    )
    outputs = model.serving_default(tf.constant(["phone"]))
    tau = outputs["tau"].numpy()
    np.testing.assert_allclose(outputs["threshold"], wanted(tau), atol=1e-6)
    np.testing.assert_allclose(outputs["alpha"], 1 / tau, rtol=1e-6)
    assert outputs["beta"].numpy() == 1.5


def _constant_head():
    """Whatever the query, a level of -5."""

    def head(vectors, tau):
        return tf.zeros_like(tau) - 5

    head.variables = []
    return head


def test_interpolation_is_that_of_numpy():
    keep, cutoffs = recall_table(calibration())
    at = np.concatenate([keep, np.linspace(0, 1, 201)])
    for row in cutoffs:
        received = interpolate(tf.constant(at), keep, tf.constant(np.tile(row, (len(at), 1))))
        np.testing.assert_allclose(received, np.interp(at, keep, row), atol=1e-12)
    # The head's own map, although the grid has the points of all.
    asked = calibration().strata["head"]
    np.testing.assert_allclose(np.interp(at, keep, cutoffs[0]), asked.cutoff(at), atol=1e-6)


def test_rejects_what_is_not_towers(tmp_path, tower_files, moments, config):
    def export(towers, of):
        export_query_model(towers, tmp_path / "model", calibration(), None, of, config)

    with pytest.raises(UserError, match=r"towers\.json must be a readable JSON file"):
        export(tmp_path, moments)
    with pytest.raises(UserError, match=r"must be of 8 dimensions, as the towers .*: 3"):
        export(tower_files[0], Moments(np.zeros(3), np.eye(3)))
    other = tmp_path / "other"
    tf.saved_model.save(tf.Module(), str(other))
    DESCRIPTION.save(other)
    with pytest.raises(UserError, match="must have the signatures query, item, serialized_examp"):
        export(other, moments)
    assert not (tmp_path / "model").exists()

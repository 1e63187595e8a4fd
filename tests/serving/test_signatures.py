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
from level_oracle import level_of
from scipy import stats
from tensorflow.python.saved_model import loader_impl
from tiny_release import CONFIG, DESCRIPTION, DIMENSION, calibration, learned_law, write_towers

from pebr_tf.config import Cutoff
from pebr_tf.cutoff.knob_map import KnobMap
from pebr_tf.errors import UserError
from pebr_tf.release.catalogue import Moments
from pebr_tf.retrieval.encoded import TOWER_FIELDS
from serving.signatures import HeldItems, QueryModel, export_query_model

QUERIES = ["red phone", "phone", "blue laptop bag", "手机"]
SIGNATURES = ("serving_default", "query_at", "share_at", "recall_at")
OUTPUTS = {
    *("embedding", "tau", "alpha", "beta", "noise_share", "background_alpha", "background_beta"),
    *("level", "threshold", "expected_recall", "expected_count", "unfamiliar"),
    *("stratum", "frequency"),
}


@pytest.fixture(scope="module")
def model(parts):
    return tf.saved_model.load(str(parts.cutoff / "query_model"))


@pytest.fixture(scope="module")
def encoded(model):
    return outputs_of(model, "serving_default")


@pytest.fixture(scope="module")
def held(vectors, moments):
    return HeldItems(vectors, len(vectors), moments)


def outputs_of(model, signature, queries=QUERIES, **inputs):
    tensors = {name: tf.constant(value, tf.float32) for name, value in inputs.items()}
    outputs = model.signatures[signature](query=tf.constant(queries), **tensors)
    return {name: value.numpy() for name, value in outputs.items()}


def threshold_of(cutoffs, encoded):
    """The equation of docs/maths.md, section 5, in float64."""
    exponent = encoded["tau"].astype(float) * (cutoffs + encoded["level"].astype(float))
    return np.clip(2 * np.exp(exponent) - 1, -1, 1)


def recall_of(encoded, cosines):
    """The share of the relevant items above cosines, by SciPy, through the map of the shares."""
    below = stats.beta.cdf((1 + cosines) / 2, encoded["alpha"], encoded["beta"])
    return np.interp(1 - below, [0, 0.5, 1], [0, 0.6, 1])


def test_says_all_there_is_to_know_of_a_query(model, encoded, tower_files, vectors):
    towers = tower_files[1].query(tf.constant(QUERIES))
    assert set(model.signatures) == {*SIGNATURES, "encode", "item", "serialized_examples"}
    lean = outputs_of(model, "encode")
    assert set(lean) == set(TOWER_FIELDS)
    for name in TOWER_FIELDS:
        np.testing.assert_array_equal(lean[name], encoded[name])
    assert set(encoded) == OUTPUTS
    for name in ("embedding", "tau", "frequency", "stratum"):
        np.testing.assert_array_equal(encoded[name], towers[name].numpy())
    assert encoded["stratum"].tolist() == [0, 1, 2, 2]
    assert encoded["stratum"].dtype == np.int64
    # The background has the mean and variance that the cosines of all items have.
    background = stats.beta(encoded["background_alpha"], encoded["background_beta"])
    cosines = encoded["embedding"] @ vectors.T
    np.testing.assert_allclose(2 * background.mean() - 1, cosines.mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(4 * background.var(), cosines.var(axis=1), atol=1e-4)
    # The level at T = .6 over all items.
    logits = np.log((1 + cosines.astype(float)) / 2) / encoded["tau"][:, None]
    np.testing.assert_allclose(encoded["level"], level_of(logits, 0.6), rtol=1e-5)
    # At .9 the map of the signature has -1.5 + .2, for every query.
    wanted = threshold_of(-1.3, encoded)
    np.testing.assert_allclose(encoded["threshold"], wanted, atol=1e-6)
    assert ((wanted > -1) & (wanted < 1)).all()
    np.testing.assert_allclose(encoded["expected_recall"], recall_of(encoded, wanted), atol=1e-5)
    np.testing.assert_array_equal(
        encoded["expected_count"], (cosines >= encoded["threshold"][:, None]).sum(axis=1)
    )
    empty = model.signatures["serving_default"](query=tf.constant([], tf.string))
    assert empty["embedding"].shape == [0, DIMENSION]


def test_the_law_is_that_of_the_head(encoded):
    weights = learned_law()
    tau, level, frequency = (encoded[name].astype(float) for name in ("tau", "level", "frequency"))
    inputs = np.stack([np.log(tau), tau * level, np.log(1 + frequency)], axis=1)
    x = np.clip((inputs - weights.center) / weights.scale, -4, 4)
    hidden = np.tanh(x @ weights.inner + weights.inner_bias)
    logit, log_concentration = (weights.bias + x @ weights.linear + hidden @ weights.outer).T
    mean, concentration = 1 / (1 + np.exp(-logit)), np.exp(np.clip(log_concentration, -2, 9))
    np.testing.assert_allclose(encoded["alpha"], mean * concentration + 0.05, rtol=1e-5)
    np.testing.assert_allclose(encoded["beta"], (1 - mean) * concentration + 0.05, rtol=1e-5)
    noise = 1 / (1 + np.exp(2 - 0.5 * x[:, 2]))
    np.testing.assert_allclose(encoded["noise_share"], noise, rtol=1e-5)
    alone = weights.numpy_laws(tau, level, frequency)
    for name, values in zip(("alpha", "beta", "noise_share"), alone, strict=True):
        np.testing.assert_allclose(encoded[name], values, rtol=1e-5)
    assert np.ptp(encoded["alpha"]) > 1
    assert np.ptp(encoded["beta"]) > 1


def test_a_recall_goes_through_the_map_of_the_signature(model, encoded):
    recalls = np.array([0.5, 0.8, 0.95, 0.999])
    outputs = outputs_of(model, "query_at", recall=recalls)
    assert set(outputs) == OUTPUTS
    # Points at .5, .75, .9 and .95 have 1.5, 0, -1.5 and -3, all plus .2.
    wanted = threshold_of(np.array([1.7, 0.2 - 1.5 / 3, -2.8, -2.8]), encoded)
    np.testing.assert_allclose(outputs["threshold"], wanted, atol=1e-6)
    np.testing.assert_array_equal(outputs["level"], encoded["level"])


def test_a_share_is_kept_of_every_query(model, encoded):
    shares = np.array([0.1, 0.6, 0.9, 0.99])
    outputs = outputs_of(model, "share_at", share=shares)
    assert set(outputs) == OUTPUTS
    own = np.interp(shares, [0, 0.6, 1], [0, 0.5, 1])
    wanted = 2 * stats.beta.isf(own, encoded["alpha"], encoded["beta"]) - 1
    np.testing.assert_allclose(outputs["threshold"], wanted, atol=1e-6)
    np.testing.assert_allclose(outputs["expected_recall"], shares, atol=1e-4)


@pytest.mark.parametrize("signature", ["query_at", "share_at"])
def test_a_share_outside_its_range_gives_nan(model, signature):
    name = {"query_at": "recall", "share_at": "share"}[signature]
    queries, invalid = ["phone", "qq phone"] * 4, np.repeat([0.0, 1.0, -0.5, np.nan], 2)
    outputs = outputs_of(model, signature, queries, **{name: invalid})
    for output in ("threshold", "expected_recall", "expected_count"):
        assert np.isnan(outputs[output]).all()


def test_the_recall_at_any_cosine(model, encoded):
    cosines = np.linspace(-1, 1, 4 * 9).reshape(4, 9)
    received = outputs_of(model, "recall_at", cosines=cosines)["recall"]
    columns = {name: encoded[name][:, None] for name in ("alpha", "beta")}
    np.testing.assert_allclose(received, recall_of(columns, cosines), atol=1e-5)


def test_nothing_is_expected_of_an_unfamiliar_query(model, vectors):
    outputs = outputs_of(model, "query_at", ["phone", "qq phone"], recall=[0.9, 0.9])
    assert outputs["unfamiliar"].tolist() == [False, True]
    assert np.isnan(outputs["expected_recall"]).tolist() == [False, True]
    best = (outputs["embedding"] @ vectors.T).max(axis=1)
    np.testing.assert_allclose(outputs["threshold"][1], best[1], atol=1e-6)
    shares = outputs_of(model, "recall_at", ["phone", "qq phone"], cosines=[[0.5], [0.5]])
    assert np.isnan(shares["recall"]).tolist() == [[False], [True]]


def test_the_graph_has_the_incomplete_beta_function_and_no_custom_op(parts):
    graph = loader_impl.parse_saved_model(str(parts.cutoff / "query_model")).meta_graphs[0]
    functions = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(node for each in functions for node in each.node_def)]
    names = {each.signature.name for each in functions}
    operations = {node.op for node in nodes} - names
    assert "Betainc" in operations
    assert [name for name in operations if not hasattr(tf.raw_ops, name)] == []


def test_items_and_serialized_examples(model, encoded, tower_files):
    title = tf.constant(["red phone 3", "white cable 1"])
    wanted = tower_files[1].item(title)["embedding"].numpy()
    item = model.signatures["item"](title=title)
    np.testing.assert_array_equal(item["embedding"].numpy(), wanted)
    features = {"query": b"phone", "title": b"white cable 1"}
    example = tf.train.Example()
    for name, value in features.items():
        example.features.feature[name].bytes_list.value.append(value)
    outputs = model.signatures["serialized_examples"](
        examples=tf.constant([example.SerializeToString()])
    )
    np.testing.assert_array_equal(outputs["item_embedding"].numpy(), wanted[1:])
    np.testing.assert_array_equal(outputs["query_embedding"].numpy(), encoded["embedding"][1:2])
    np.testing.assert_allclose(outputs["threshold"].numpy(), encoded["threshold"][1:2], atol=1e-6)


@pytest.mark.slow
def test_tensorflow_alone_loads_it_without_the_towers_folder(tmp_path, held):
    write_towers(tmp_path / "towers", tmp_path / "vocabulary")
    export_query_model(tmp_path / "towers", tmp_path / "model", calibration(), held, CONFIG)
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
        # Cut-offs of the signature: -1.3 at a recall of .9, .2 at .75.
        ("cdf", "beta", ("recall", 0.9), lambda tau: 2 * np.exp(-1.3 * tau) - 1),
        ("cdf", "exponential", ("recall", 0.9), lambda tau: 1 - 1.3 * tau),
        ("score", "beta", ("recall", 0.75), lambda tau: 0 * tau + 0.2),
        ("gap", "beta", ("recall", 0.9), lambda tau: 0 * tau - 1),
        ("nucleus", "beta", ("recall", 0.9), lambda tau: 0 * tau - 1),
        ("level", "beta", ("score", 0.25), lambda tau: 0 * tau + 0.25),
        # A budget of 50 has the cut-off -16 / 9, between the recalls .9 and .95 of the service.
        ("cdf", "beta", ("budget", 50), lambda tau: 2 * np.exp((0.2 - 16 / 9) * tau) - 1),
    ],
)
def test_every_policy_and_knob_gives_a_threshold(tower_files, held, policy, family, knob, wanted):
    model = QueryModel(
        tf.saved_model.load(str(tower_files[0])),
        calibration(policy, family=family, default_knob=knob[0], default_value=knob[1]),
        Cutoff(),
        held,
    )
    outputs = model.serving_default(tf.constant(["phone"]))
    np.testing.assert_allclose(outputs["threshold"], wanted(outputs["tau"].numpy()), atol=1e-6)
    promises = knob[0] != "score" and outputs["threshold"].numpy() != -1
    assert np.isfinite(outputs["expected_recall"].numpy()) == promises


@pytest.mark.parametrize("policy", ["level", "top_k"])
def test_the_threshold_of_top_k_is_the_last_cosine(tower_files, held, policy):
    default = {"default_knob": "top_k", "default_value": 10}
    given = calibration(policy, **(default if policy == "level" else {}))
    if policy == "top_k":
        # Ranks from 0 to 9.
        ranks = KnobMap(np.array([0, 0.9]), np.array([0, -9.5], "f4"), 9)
        given = replace(given, signature=ranks)
    model = QueryModel(tf.saved_model.load(str(tower_files[0])), given, Cutoff(), held)
    outputs = model.serving_default(tf.constant(["phone", "red qq"]))
    cosines = outputs["embedding"].numpy() @ held.vectors.T
    counts = (cosines >= outputs["threshold"].numpy()[:, None]).sum(axis=1)
    # A knob that promises nothing has no unfamiliar queries.
    assert counts.tolist() == [10, 10 if policy == "level" else 1]
    assert outputs["expected_count"].numpy().tolist() == counts.tolist()
    assert np.isnan(outputs["expected_recall"]).all()


def test_an_unfamiliar_query_has_the_configured_items(tower_files, held):
    towers = tf.saved_model.load(str(tower_files[0]))
    model = QueryModel(towers, calibration(), Cutoff(unfamiliar_items=3), held)
    outputs = model.serving_default(tf.constant(["red qq"]))
    assert outputs["expected_count"].numpy() == 3


@pytest.mark.parametrize(("held_share", "wanted"), [(1, (7, 2)), (2, (6, 2)), (4, (4, 4))])
def test_lists_have_at_least_the_floor_and_at_most_the_limit(
    tower_files, vectors, moments, held_share, wanted
):
    held = HeldItems(vectors[::held_share], len(vectors), moments)
    signature = KnobMap(np.array([0.01, 0.99]), np.array([30, -30], "f4"), 100)
    bounded = calibration(floor=2, limit=7, signature=signature)
    model = QueryModel(tf.saved_model.load(str(tower_files[0])), bounded, Cutoff(), held)
    outputs = model.query_at(tf.constant(["phone"] * 2), tf.constant([0.99, 0.01]))
    assert tuple(outputs["expected_count"].numpy()) == wanted
    counts = np.sum(outputs["embedding"] @ held.vectors.T >= outputs["threshold"][:, None], axis=1)
    assert tuple(held_share * counts) == wanted


def test_rejects_what_is_not_towers(tmp_path, tower_files, moments, vectors):
    def export(towers, of):
        held = HeldItems(vectors, len(vectors), of)
        export_query_model(towers, tmp_path / "model", calibration(), held, CONFIG)

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

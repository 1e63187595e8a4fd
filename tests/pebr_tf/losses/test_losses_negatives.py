"""Candidates, masks and corrections against loops over the same facts."""

import losses_oracle as oracle
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs

from pebr_tf.losses import Negatives, exp_nce
from pebr_tf.losses.candidates import collect

BATCH, DIMENSION = 7, 4


def batch_of(seed):
    generator = np.random.default_rng(seed)
    return (
        generator,
        oracle.unit_rows(generator, BATCH, DIMENSION),
        oracle.unit_rows(generator, BATCH, DIMENSION),
    )


def facts_of(generator):
    """Ids from a small pool, so that every mask has something to do."""
    return {
        "item_ids": generator.integers(0, 6, BATCH),
        "query_ids": generator.integers(0, 4, BATCH),
        "known_positive_ids": generator.integers(-1, 6, (BATCH, 2)),
        "log_q": np.log(generator.uniform(0.01, 0.5, BATCH)),
        "log_query_prior": np.log(generator.uniform(0.01, 0.5, BATCH)),
    }


@pytest.mark.parametrize("seed", range(2))
def test_masks_and_corrections_equal_the_loops(seed):
    generator, queries, items = batch_of(seed)
    facts = facts_of(generator)
    tau = generator.uniform(0.1, 0.6, BATCH)
    options = {"symmetric_weight": 0.7, "gamma": 0.4}
    actual = exp_nce(queries, items, tau, negatives=Negatives(**facts), **options)
    expected = oracle.contrastive(queries, items, tau, oracle.exp_score, facts, **options)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "names",
    [("item_ids",), ("query_ids",), ("item_ids", "known_positive_ids"), ("log_q",)],
    ids="+".join,
)
def test_each_fact_alone_equals_the_loops(names):
    generator, queries, items = batch_of(10)
    every = facts_of(generator)
    facts = {name: every[name] for name in names}
    actual = exp_nce(queries, items, 0.3, negatives=Negatives(**facts))
    expected = oracle.contrastive(queries, items, 0.3, oracle.exp_score, facts)
    plain = oracle.contrastive(queries, items, 0.3, oracle.exp_score)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)
    assert not np.allclose(expected, plain), "the fact changes nothing: a poor test"


def test_integer_ids_of_different_widths_meet():
    _, queries, items = batch_of(3)
    negatives = Negatives(
        item_ids=tf.range(BATCH, dtype=tf.int32),
        known_positive_ids=tf.constant([[BATCH - 1]] * BATCH, tf.int64),
    )
    removed = collect(queries, items, negatives).removed.numpy()
    assert removed[:, -1].tolist() == [True] * (BATCH - 1) + [False]
    assert not removed[:, :-1].any()


def test_the_positive_is_never_removed():
    _, queries, items = batch_of(3)
    negatives = Negatives(
        item_ids=[5] * BATCH, query_ids=[1] * BATCH, known_positive_ids=[[5, 5]] * BATCH
    )
    candidates = collect(queries, items, negatives)
    np.testing.assert_array_equal(candidates.removed, ~np.eye(BATCH, dtype=bool))
    assert not candidates.negative.numpy().any()


def test_lists_of_known_positives_may_be_empty():
    _, queries, items = batch_of(3)
    negatives = Negatives(
        item_ids=[1, 1, 2, 3, 4, 5, 6], known_positive_ids=np.zeros((BATCH, 0), np.int64)
    )
    removed = collect(queries, items, negatives).removed.numpy()
    assert np.argwhere(removed).tolist() == [[0, 1], [1, 0]]


def test_log_q_equals_the_candidate_sampling_probability_of_tfrs():
    generator, queries, items = batch_of(5)
    queries, items = queries.astype(np.float32), items.astype(np.float32)
    probability = generator.uniform(0.001, 0.5, BATCH).astype(np.float32)
    expected = tfrs.tasks.Retrieval(temperature=0.2)(
        tf.constant(queries), tf.constant(items), candidate_sampling_probability=probability
    )
    actual = exp_nce(queries, items, 0.2, negatives=Negatives(log_q=np.log(probability)))
    assert float(tf.reduce_sum(actual)) == pytest.approx(float(expected), abs=1e-5)


def test_item_ids_equal_the_accidental_hits_of_tfrs():
    _, queries, items = batch_of(6)
    queries, items = queries.astype(np.float32), items.astype(np.float32)
    ids = tf.constant([1, 2, 1, 3, 3, 3, 4])
    expected = tfrs.tasks.Retrieval(temperature=0.2, remove_accidental_hits=True)(
        tf.constant(queries), tf.constant(items), candidate_ids=ids
    )
    actual = exp_nce(queries, items, 0.2, negatives=Negatives(item_ids=ids))
    assert float(tf.reduce_sum(actual)) == pytest.approx(float(expected), abs=1e-5)


def test_a_removed_candidate_gets_no_gradient():
    _, queries, items = batch_of(7)
    items = tf.Variable(items)
    negatives = Negatives(item_ids=np.arange(BATCH), known_positive_ids=[[0]] * BATCH)
    with tf.GradientTape() as tape:
        # Without the query whose positive the removed item is.
        loss = tf.reduce_sum(exp_nce(queries, items, 0.2, negatives=negatives)[1:])
    gradient = tf.convert_to_tensor(tape.gradient(loss, items)).numpy()
    assert (gradient[0] == 0).all()
    assert (np.abs(gradient[1:]).sum(axis=1) > 0).all()


def test_negatives_cross_a_graph_boundary_without_retracing():
    _, queries, items = batch_of(9)
    traces = []

    @tf.function
    def loss(negatives):
        traces.append(1)
        return exp_nce(queries, items, 0.2, negatives=negatives)

    for ids in ([1, 2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1, 1]):
        negatives = Negatives(item_ids=tf.constant(ids))
        np.testing.assert_allclose(
            loss(negatives), exp_nce(queries, items, 0.2, negatives=negatives), rtol=1e-10
        )
    assert len(traces) == 1


def test_unknown_batch_sizes_trace():
    _, queries, items = batch_of(9)
    vectors = tf.TensorSpec([None, DIMENSION], tf.float64)

    @tf.function(input_signature=[vectors, vectors, tf.TensorSpec([None], tf.int64)])
    def loss(queries, items, ids):
        negatives = Negatives(item_ids=ids)
        return exp_nce(queries, items, 0.2, negatives=negatives, symmetric_weight=1.0)

    ids = np.array([1, 1, 2, 3, 4, 5, 6])
    expected = oracle.contrastive(
        queries, items, 0.2, oracle.exp_score, {"item_ids": ids}, symmetric_weight=1.0
    )
    np.testing.assert_allclose(loss(queries, items, ids), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"item_ids": [1, 2]},
            "item_ids must have the shape [B] with B = 3. Received: shape (2,).",
        ),
        (
            {"item_ids": [1, 2, 3], "known_positive_ids": [1, 2, 3]},
            "known_positive_ids must have the shape [B, P] with B = 3. Received: shape (3,).",
        ),
        ({"log_q": [0, 1, 2]}, "log_q must be floating point. Received: int32."),
        ({"item_ids": [0.5, 1.0, 2.0]}, "item_ids must be integers. Received: float32."),
        (
            {"known_positive_ids": [[1], [2], [3]]},
            "known_positive_ids requires item_ids. Received: item_ids=None.",
        ),
    ],
)
def test_bad_facts_are_rejected(fields, message):
    vectors = np.eye(3, 2)
    with pytest.raises(ValueError, match=oracle.exactly(message)):
        exp_nce(vectors, vectors, 1.0, negatives=Negatives(**fields))

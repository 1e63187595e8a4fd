"""Candidates, masks and corrections against loops over the same facts."""

import losses_oracle as oracle
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs

from pebr_tf.losses import Negatives, exp_nce, info_nce
from pebr_tf.losses.candidates import collect

BATCH, DIMENSION, EXTRA = 7, 4, 5


def batch_of(seed):
    generator = np.random.default_rng(seed)
    return (
        generator,
        oracle.unit_rows(generator, BATCH, DIMENSION),
        oracle.unit_rows(generator, BATCH, DIMENSION),
    )


def facts_of(generator, per_query_extra):
    """Ids from a small pool, so that every mask has something to do."""
    extra_shape = (BATCH, EXTRA) if per_query_extra else (EXTRA,)
    return {
        "item_ids": generator.integers(0, 6, BATCH),
        "query_ids": generator.integers(0, 4, BATCH),
        "known_positive_ids": generator.integers(-1, 6, (BATCH, 2)),
        "extra_item_vectors": oracle.unit_rows(generator, *extra_shape, DIMENSION),
        "extra_item_ids": generator.integers(0, 9, extra_shape),
        "log_q": np.log(generator.uniform(0.01, 0.5, BATCH)),
        "extra_log_q": np.log(generator.uniform(0.01, 0.5, extra_shape)),
        "log_query_prior": np.log(generator.uniform(0.01, 0.5, BATCH)),
    }


@pytest.mark.parametrize("per_query_extra", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_masks_extras_and_corrections_equal_the_loops(seed, per_query_extra):
    generator, queries, items = batch_of(seed)
    facts = facts_of(generator, per_query_extra)
    tau = generator.uniform(0.1, 0.6, BATCH)
    options = {"symmetric_weight": 0.7, "gamma": 0.4}
    actual = exp_nce(queries, items, tau, negatives=Negatives(**facts), **options)
    expected = oracle.contrastive(queries, items, tau, oracle.exp_score, facts, **options)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "names",
    [
        ("item_ids",),
        ("query_ids",),
        ("item_ids", "known_positive_ids"),
        ("extra_item_vectors",),
        ("extra_item_vectors", "item_ids", "extra_item_ids"),
        ("extra_item_vectors", "item_ids", "known_positive_ids", "extra_item_ids"),
        ("log_q",),
        ("extra_item_vectors", "log_q", "extra_log_q"),
    ],
    ids="+".join,
)
def test_each_fact_alone_equals_the_loops(names):
    generator, queries, items = batch_of(10)
    every = facts_of(generator, per_query_extra=False)
    facts = {name: every[name] for name in names}
    actual = info_nce(queries, items, 0.3, negatives=Negatives(**facts))
    expected = oracle.contrastive(queries, items, 0.3, oracle.exp_score, facts)
    plain = oracle.contrastive(queries, items, 0.3, oracle.exp_score)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)
    assert not np.allclose(expected, plain), "the fact changes nothing: a poor test"


def test_string_ids_mask_like_integers():
    generator, queries, items = batch_of(3)
    facts = facts_of(generator, per_query_extra=True)
    names = [name for name in facts if name.endswith("_ids")]
    as_strings = {**facts, **{name: facts[name].astype(str) for name in names}}
    np.testing.assert_array_equal(
        collect(queries, items, Negatives(**as_strings)).removed,
        collect(queries, items, Negatives(**facts)).removed,
    )


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


def test_cosines_of_extra_items_stand_in_for_their_vectors():
    generator, queries, items = batch_of(4)
    extra = oracle.unit_rows(generator, BATCH, EXTRA, DIMENSION)
    by_vector = exp_nce(queries, items, 0.2, negatives=Negatives(extra_item_vectors=extra))
    cosines = np.einsum("bn,bmn->bm", queries, extra)
    by_cosine = exp_nce(queries, items, 0.2, negatives=Negatives(extra_cosines=cosines))
    np.testing.assert_allclose(by_vector, by_cosine, rtol=1e-12)


def test_log_q_equals_the_candidate_sampling_probability_of_tfrs():
    generator, queries, items = batch_of(5)
    queries, items = queries.astype(np.float32), items.astype(np.float32)
    probability = generator.uniform(0.001, 0.5, BATCH).astype(np.float32)
    expected = tfrs.tasks.Retrieval(temperature=0.2)(
        tf.constant(queries), tf.constant(items), candidate_sampling_probability=probability
    )
    actual = info_nce(queries, items, 0.2, negatives=Negatives(log_q=np.log(probability)))
    assert float(tf.reduce_sum(actual)) == pytest.approx(float(expected), abs=1e-5)


def test_item_ids_equal_the_accidental_hits_of_tfrs():
    _, queries, items = batch_of(6)
    queries, items = queries.astype(np.float32), items.astype(np.float32)
    ids = tf.constant([1, 2, 1, 3, 3, 3, 4])
    expected = tfrs.tasks.Retrieval(temperature=0.2, remove_accidental_hits=True)(
        tf.constant(queries), tf.constant(items), candidate_ids=ids
    )
    actual = info_nce(queries, items, 0.2, negatives=Negatives(item_ids=ids))
    assert float(tf.reduce_sum(actual)) == pytest.approx(float(expected), abs=1e-5)


def test_a_removed_candidate_gets_no_gradient():
    _, queries, items = batch_of(7)
    extra = tf.Variable(oracle.unit_rows(np.random.default_rng(8), 3, DIMENSION))
    negatives = Negatives(
        item_ids=np.arange(BATCH),
        known_positive_ids=[[100]] * BATCH,
        extra_item_vectors=extra,
        extra_item_ids=[100, 101, 102],
    )
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(info_nce(queries, items, 0.2, negatives=negatives))
    gradient = tf.convert_to_tensor(tape.gradient(loss, extra)).numpy()
    assert (gradient[0] == 0).all()
    assert (np.abs(gradient[1:]).sum(axis=1) > 0).all()


def test_negatives_cross_a_graph_boundary_without_retracing():
    _, queries, items = batch_of(9)
    traces = []

    @tf.function
    def loss(negatives):
        traces.append(1)
        return info_nce(queries, items, 0.2, negatives=negatives)

    for ids in ([1, 2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1, 1]):
        negatives = Negatives(item_ids=tf.constant(ids))
        np.testing.assert_allclose(
            loss(negatives), info_nce(queries, items, 0.2, negatives=negatives), rtol=1e-10
        )
    assert len(traces) == 1


def test_unknown_batch_sizes_trace():
    _, queries, items = batch_of(9)
    signature = [tf.TensorSpec([None, DIMENSION], tf.float64)] * 2
    signature += [
        tf.TensorSpec([None, None, DIMENSION], tf.float64),
        tf.TensorSpec([None], tf.int64),
    ]

    @tf.function(input_signature=signature)
    def loss(queries, items, extra, ids):
        negatives = Negatives(item_ids=ids, extra_item_vectors=extra)
        return info_nce(queries, items, 0.2, negatives=negatives, symmetric_weight=1.0)

    extra = oracle.unit_rows(np.random.default_rng(1), BATCH, 2, DIMENSION)
    ids = np.array([1, 1, 2, 3, 4, 5, 6])
    expected = oracle.contrastive(
        queries,
        items,
        0.2,
        oracle.exp_score,
        {"item_ids": ids, "extra_item_vectors": extra},
        symmetric_weight=1.0,
    )
    np.testing.assert_allclose(loss(queries, items, extra, ids), expected, rtol=1e-10)


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
        (
            {"extra_item_vectors": np.zeros((5, 4))},
            "extra_item_vectors must have the shape [M, n] or [B, M, n] with B = 3, n = 2. "
            "Received: shape (5, 4).",
        ),
        (
            {"extra_cosines": np.zeros((3, 5)), "item_ids": [1, 2, 3], "extra_item_ids": [1, 2]},
            "extra_item_ids must have the shape [M] or [B, M] with B = 3, M = 5. "
            "Received: shape (2,).",
        ),
        ({"log_q": [0, 1, 2]}, "log_q must be floating point. Received: int32."),
        ({"item_ids": [0.5, 1.0, 2.0]}, "item_ids must be integers or strings. Received: float32."),
        (
            {"item_ids": [1, 2, 3], "known_positive_ids": [["a"], ["b"], ["c"]]},
            "Ids of items must all be integers or all be strings. "
            "Received: item_ids int32, known_positive_ids string.",
        ),
        (
            {"known_positive_ids": [[1], [2], [3]]},
            "known_positive_ids requires item_ids. Received: item_ids=None.",
        ),
        (
            {"extra_log_q": [0.5]},
            "extra_log_q requires extra_item_vectors or extra_cosines. Received: neither.",
        ),
        (
            {"extra_cosines": np.zeros((3, 5)), "extra_item_vectors": np.zeros((5, 2))},
            "At most one of extra_item_vectors and extra_cosines may be given. Received: both.",
        ),
        (
            {"extra_cosines": np.zeros((3, 5)), "log_q": np.zeros(3)},
            "With extra items, log_q and extra_log_q must be given together: half a correction "
            "favours one kind of negative. Received: extra_log_q=None.",
        ),
    ],
)
def test_bad_facts_are_rejected(fields, message):
    vectors = np.eye(3, 2)
    with pytest.raises(ValueError, match=oracle.exactly(message)):
        info_nce(vectors, vectors, 1.0, negatives=Negatives(**fields))

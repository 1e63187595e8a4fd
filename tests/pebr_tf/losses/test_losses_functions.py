"""Loss functions by hand and by loops over the same facts; gradients, extremes, negatives."""

import losses_oracle as oracle
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs
from gradients import assert_gradients
from losses_oracle import BATCH, DIMENSION, random_batch

from pebr_tf.losses.beta_nce import beta_nce
from pebr_tf.losses.candidates import collect
from pebr_tf.losses.exp_nce import exp_nce
from pebr_tf.losses.mle import mle
from pebr_tf.losses.negatives import Negatives
from pebr_tf.losses.pointwise import pointwise
from pebr_tf.losses.similarity import positive_cosines

NCE = {"exp_nce": exp_nce, "beta_nce": beta_nce}
LOSSES = {"pointwise": pointwise, "mle": mle, **NCE}
MASKS = ("item_ids", "query_ids")
POLES = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
# Cosines by hand: [[1, .6], [0, .8]]; z: [[1, .8], [.5, .9]].
HAND_QUERIES = np.array([[1.0, 0.0], [0.0, 1.0]])
HAND_ITEMS = np.array([[1.0, 0.0], [0.6, 0.8]])

every_loss = pytest.mark.parametrize("name", LOSSES)
every_nce = pytest.mark.parametrize("name", NCE)


def random_facts(seed):
    """Ids from a small pool, so that every mask has something to do."""
    generator = np.random.default_rng(seed)
    return {
        "item_ids": generator.integers(0, 6, BATCH),
        "query_ids": generator.integers(0, 4, BATCH),
        "log_q": np.log(generator.uniform(0.01, 0.5, BATCH)),
        "log_query_prior": np.log(generator.uniform(0.01, 0.5, BATCH)),
    }


def options_of(name, **options):
    """The options of a loss, the general form of the Beta law included."""
    if name not in NCE:
        return {}
    return {**options, "delta_beta": np.linspace(-0.5, 1, BATCH)} if name == "beta_nce" else options


@every_loss
@pytest.mark.parametrize(
    "names", [(), ("item_ids",), ("query_ids",), MASKS, ("log_q",), "all"], ids="+".join
)
def test_masks_and_corrections_equal_the_loops(name, names):
    queries, items, tau = random_batch(2)
    every = {fact: value for fact, value in random_facts(2).items() if name in NCE or fact in MASKS}
    facts = {fact: value for fact, value in every.items() if names == "all" or fact in names}
    options = options_of(name, symmetric_weight=0.7, gamma=0.4 if names == "all" else 0.0)
    expected = oracle.LOOPS[name](queries, items, tau, facts=facts, **options)
    received = LOSSES[name](queries, items, tau, negatives=Negatives(**facts), **options)
    np.testing.assert_allclose(received, expected, rtol=1e-9)
    if facts:
        plain = oracle.LOOPS[name](queries, items, tau, facts={}, **options)
        assert not np.allclose(expected, plain), "the facts change nothing: a poor test"


@every_loss
def test_gradients_equal_finite_differences(name):
    negatives = Negatives(item_ids=np.array([1, 1, 2, 3, 4, 5]))
    delta = [np.linspace(-0.5, 1.0, BATCH)] if name == "beta_nce" else []

    def value(queries, items, tau, *delta):
        options = {"symmetric_weight": 0.7} if name in NCE else {}
        options |= dict(zip(["delta_beta"], delta, strict=False))
        return tf.reduce_sum(LOSSES[name](queries, items, tau, negatives=negatives, **options))

    assert_gradients(value, [*random_batch(1), *delta], atol=1e-6)


@every_loss
def test_vectors_need_not_have_length_one(name):
    queries, items, tau = random_batch(10)
    received = LOSSES[name](3.0 * queries, 0.1 * items, tau)
    np.testing.assert_allclose(received, LOSSES[name](queries, items, tau), rtol=1e-11)


def assert_finite(loss, queries, items, tau, **options):
    variables = [tf.Variable(value) for value in (queries, items, tau)]
    with tf.GradientTape() as tape:
        values = loss(*variables, **options)
    gradients = tape.gradient(values, variables)
    assert np.isfinite(values).all()
    for gradient in gradients:
        assert np.isfinite(tf.cast(gradient, tf.float32)).all()
    return values.numpy(), gradients


@every_loss
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32])
def test_values_and_gradients_are_finite_at_the_poles(name, dtype):
    queries = tf.cast(POLES, dtype)
    options = [{"symmetric_weight": 1.0}] if name in NCE else [{}]
    options += [{"delta_beta": delta} for delta in (-0.9, 2.0) if name == "beta_nce"]
    for tau in (0.002, 1.0):
        for items in (queries, -queries):
            for each in options:
                temperatures = np.full(2, tau, np.float32)
                values, _ = assert_finite(LOSSES[name], queries, items, temperatures, **each)
                assert values.dtype == np.float32


@every_loss
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_vectors_give_float32_losses(name, dtype):
    queries, items = (tf.cast(value, dtype) for value in random_batch(16)[:2])
    tau = np.full(BATCH, 0.002, np.float32)
    values, gradients = assert_finite(LOSSES[name], queries, items, tau)
    assert values.dtype == np.float32
    assert gradients[0].dtype == dtype
    # The rounding of the input is all that half precision may cost.
    exact = LOSSES[name](*(tf.cast(value, tf.float64) for value in (queries, items, tau)))
    np.testing.assert_allclose(values, exact, rtol=1e-5, atol=1e-3)


@every_nce
@pytest.mark.parametrize(("batch", "ids"), [(1, None), (BATCH, [7] * BATCH)])
def test_without_negatives_there_is_no_loss(name, batch, ids):
    queries, items, tau = (value.astype(np.float32) for value in random_batch(14, batch))
    negatives = Negatives(item_ids=ids)
    values, gradients = assert_finite(
        LOSSES[name], queries, items, tau, negatives=negatives, symmetric_weight=1.0
    )
    np.testing.assert_array_equal(values, np.zeros(batch))
    for gradient in gradients:
        np.testing.assert_allclose(gradient, np.zeros_like(gradient), atol=1e-6)


def test_a_positive_near_the_opposite_pole_is_called_back():
    angle = np.pi - 1e-3
    queries = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    items = np.array([[np.cos(angle), np.sin(angle)], [0.0, 1.0]], np.float32)
    tau = np.full(2, 0.05, np.float32)
    _, (_, gradient, _) = assert_finite(beta_nce, queries, items, tau)
    # Descent must raise the item's first coordinate's cosine: move it along +sin.
    assert gradient[0, 1] < -0.1


def test_a_masked_negative_at_the_pole_costs_nothing():
    vectors = np.eye(2, 3)[[0, 0]]
    values = mle(vectors, vectors, 0.5, negatives=Negatives(item_ids=[1, 1]))
    # In three dimensions, Beta(3, 1) over the uniform law: densities of 3 / 2 and 1 / 2.
    np.testing.assert_allclose(values, [-np.log(3 / 4)] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "tau", "expected"),
    [
        (exp_nce, 0.5, [np.log1p(np.exp(-0.4 / 0.5)), np.log1p(np.exp(-0.8 / 0.5))]),
        (exp_nce, [0.5, 0.25], [np.log1p(np.exp(-0.4 / 0.5)), np.log1p(np.exp(-0.8 / 0.25))]),
        (beta_nce, [0.5, 0.25], [np.log(1 + 0.8**2), np.log(1 + (0.5 / 0.9) ** 4)]),
        (pointwise, 1.0, np.log1p(np.exp([-1, -0.8])) + np.log1p(np.exp([0.6, 0]))),
    ],
)
def test_by_hand(loss, tau, expected):
    np.testing.assert_allclose(loss(HAND_QUERIES, HAND_ITEMS, np.array(tau)), expected, rtol=1e-12)


def test_tiny_losses_keep_their_digits_at_the_smallest_tau():
    # Cosines .9 and .88: exp(-.02 / .002) is far below float32's step at a logit of 450.
    angles = np.arccos([0.9, 0.88])
    queries = np.array([[1.0, 0.0]] * 2, np.float32)
    items = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    actual = exp_nce(queries, items, np.full(2, 0.002, np.float32))
    assert float(actual[0]) == pytest.approx(np.log1p(np.exp(-10.0)), rel=1e-3)


def test_positive_cosines_at_their_edges():
    vectors = tf.constant(np.random.default_rng(0).normal(size=(2000, 7)), tf.float32)
    cosines = positive_cosines(vectors, vectors)
    assert float(tf.reduce_max(cosines)) <= 1.0
    assert float(tf.reduce_min(positive_cosines(vectors, -vectors))) >= -1.0
    # A zero vector has cosine zero and a finite gradient.
    query = tf.Variable([[0.0, 0.0]])
    with tf.GradientTape() as tape:
        cosine = positive_cosines(query, tf.constant([[1.0, 0.0]]))
    assert cosine.numpy() == [0.0]
    assert np.isfinite(tape.gradient(cosine, query)).all()


def test_the_positive_is_never_removed():
    queries, items, _ = random_batch(3)
    negatives = Negatives(item_ids=[5] * BATCH, query_ids=[1] * BATCH)
    candidates = collect(queries, items, negatives)
    np.testing.assert_array_equal(candidates.removed, ~np.eye(BATCH, dtype=bool))
    assert not candidates.sum_negatives(candidates.cosines).numpy().any()


def test_corrections_equal_those_of_tfrs():
    """log_q the candidate sampling probability, item_ids the accidental hits."""
    queries, items, _ = random_batch(5)
    queries, items = queries.astype(np.float32), items.astype(np.float32)
    probability = np.random.default_rng(5).uniform(0.001, 0.5, BATCH).astype(np.float32)
    ids = tf.constant([1, 2, 1, 3, 3, 4])
    expected = tfrs.tasks.Retrieval(temperature=0.2, remove_accidental_hits=True)(
        tf.constant(queries),
        tf.constant(items),
        candidate_sampling_probability=probability,
        candidate_ids=ids,
    )
    negatives = Negatives(item_ids=ids, log_q=np.log(probability))
    actual = exp_nce(queries, items, 0.2, negatives=negatives)
    assert float(tf.reduce_sum(actual)) == pytest.approx(float(expected), abs=1e-5)


def test_unknown_batch_sizes_trace():
    queries, items, _ = random_batch(9)
    vectors = tf.TensorSpec([None, DIMENSION], tf.float64)

    @tf.function(input_signature=[vectors, vectors, tf.TensorSpec([None], tf.int64)])
    def loss(queries, items, ids):
        negatives = Negatives(item_ids=ids)
        return exp_nce(queries, items, 0.2, negatives=negatives, symmetric_weight=1.0)

    ids = np.array([1, 1, 2, 3, 4, 5])
    expected = exp_nce(queries, items, 0.2, negatives=Negatives(item_ids=ids), symmetric_weight=1.0)
    np.testing.assert_allclose(loss(queries, items, ids), expected, rtol=1e-10)

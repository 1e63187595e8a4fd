"""ExpNCE and BetaNCE: values, gradients, equivalences, extremes and rejections."""

import itertools

import losses_oracle as oracle
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs
from losses_oracle import BATCH, random_batch

from pebr_tf.losses import Negatives, beta_logits, beta_nce, exp_nce, positive_cosines
from pebr_tf.losses.softmax import column_cross_entropy, cross_entropy

LOSSES = [exp_nce, beta_nce]
# Cosines by hand: [[1, .6], [0, .8]]; z: [[1, .8], [.5, .9]].
HAND_QUERIES = np.array([[1.0, 0.0], [0.0, 1.0]])
HAND_ITEMS = np.array([[1.0, 0.0], [0.6, 0.8]])


def score_of(loss):
    return oracle.beta_score if loss is beta_nce else oracle.exp_score


class TestByHand:
    def test_info_nce(self):
        expected = [np.log1p(np.exp(-0.4 / 0.5)), np.log1p(np.exp(-0.8 / 0.5))]
        np.testing.assert_allclose(exp_nce(HAND_QUERIES, HAND_ITEMS, 0.5), expected, rtol=1e-12)

    def test_exp_nce(self):
        expected = [np.log1p(np.exp(-0.4 / 0.5)), np.log1p(np.exp(-0.8 / 0.25))]
        tau = np.array([0.5, 0.25])
        np.testing.assert_allclose(exp_nce(HAND_QUERIES, HAND_ITEMS, tau), expected, rtol=1e-12)

    def test_beta_nce(self):
        expected = [np.log(1 + 0.8**2), np.log(1 + (0.5 / 0.9) ** 4)]
        tau = np.array([0.5, 0.25])
        np.testing.assert_allclose(beta_nce(HAND_QUERIES, HAND_ITEMS, tau), expected, rtol=1e-12)


class TestGradients:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_equal_finite_differences(self, loss):
        queries, items, tau = random_batch(1)
        ids = np.array([1, 1, 2, 3, 4])

        def value(queries, items, tau):
            negatives = Negatives(item_ids=ids)
            return tf.reduce_sum(
                loss(queries, items, tau, negatives=negatives, symmetric_weight=0.7)
            )

        oracle.assert_gradients(value, [queries, items, tau])

    def test_of_the_general_form_equal_finite_differences_in_delta_beta(self):
        queries, items, tau = random_batch(3)
        oracle.assert_gradients(
            lambda delta: tf.reduce_sum(beta_nce(queries, items, tau, delta_beta=delta)),
            [np.linspace(-0.5, 1.0, BATCH)],
        )


class TestOracle:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_values(self, loss):
        queries, items, tau = random_batch(2)
        prior = np.log(np.random.default_rng(2).uniform(0.1, 1.0, BATCH))
        actual = loss(
            queries,
            items,
            tau,
            negatives=Negatives(log_query_prior=prior),
            symmetric_weight=0.5,
            gamma=1.0,
        )
        expected = oracle.contrastive(
            queries,
            items,
            tau,
            score_of(loss),
            {"log_query_prior": prior},
            symmetric_weight=0.5,
            gamma=1.0,
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-10)

    def test_values_of_the_general_form(self):
        queries, items, tau = random_batch(5)
        delta = np.linspace(-0.5, 1.0, BATCH)
        actual = beta_nce(queries, items, tau, delta_beta=delta, symmetric_weight=1.0)
        expected = oracle.contrastive(
            queries, items, tau, oracle.beta_score, symmetric_weight=1.0, delta_beta=delta
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-10)


class TestEquivalences:
    def test_exp_nce_with_a_constant_tau_is_info_nce_is_tfrs(self):
        queries, items, _ = random_batch(6)
        queries, items = queries.astype(np.float32), items.astype(np.float32)
        exponential = exp_nce(queries, items, np.full(BATCH, 0.07, np.float32))
        np.testing.assert_allclose(exponential, exp_nce(queries, items, 0.07), atol=1e-6)
        task = tfrs.tasks.Retrieval(temperature=0.07)
        reference = task(tf.constant(queries), tf.constant(items))
        assert float(tf.reduce_sum(exponential)) == pytest.approx(float(reference), abs=1e-5)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_vectors_need_not_have_length_one(self, loss):
        queries, items, tau = random_batch(10)
        np.testing.assert_allclose(
            loss(3.0 * queries, 0.1 * items, tau), loss(queries, items, tau), rtol=1e-12
        )

    def test_one_direction_does_not_see_a_query_s_level_and_the_other_does(self):
        queries, items, tau = random_batch(11)
        logits = beta_logits(tf.constant(queries @ items.T), tau)
        shifted = logits + tf.constant(np.linspace(-3, 3, BATCH)[:, np.newaxis])
        np.testing.assert_allclose(cross_entropy(shifted), cross_entropy(logits), rtol=1e-10)
        columns = column_cross_entropy(logits)
        np.testing.assert_allclose(columns, cross_entropy(tf.transpose(logits)), rtol=1e-10)
        assert np.abs(column_cross_entropy(shifted) - columns).max() > 1.0

    def test_item_log_q_does_not_touch_the_item_to_query_term(self):
        queries, items, tau = random_batch(12)
        negatives = Negatives(log_q=np.linspace(-5.0, -1.0, BATCH))

        def item_to_query(negatives):
            both = beta_nce(queries, items, tau, negatives=negatives, symmetric_weight=1.0)
            return both - beta_nce(queries, items, tau, negatives=negatives)

        np.testing.assert_allclose(item_to_query(negatives), item_to_query(None), rtol=1e-10)


def test_eager_and_xla_agree():
    queries, items, tau = (tf.constant(value, tf.float32) for value in random_batch(13))
    negatives = Negatives(
        item_ids=np.array([1, 2, 1, 3, 4]),
        known_positive_ids=np.array([[3], [-1], [-1], [4], [1]]),
    )

    def values_and_gradients(queries, items, tau):
        found = []
        for loss in LOSSES:
            with tf.GradientTape() as tape:
                tape.watch([queries, items, tau])
                value = loss(queries, items, tau, negatives=negatives, symmetric_weight=1.0)
            found += [value, *tape.gradient(value, [queries, items, tau])]
        return found

    eager = values_and_gradients(queries, items, tau)
    compiled = tf.function(values_and_gradients, jit_compile=True)(queries, items, tau)
    for actual, expected in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


class TestExtremes:
    """Values and gradients stay finite at the ends of every range."""

    @staticmethod
    def assert_finite(loss, queries, items, tau, **options):
        variables = [tf.Variable(value) for value in (queries, items, tau)]
        with tf.GradientTape() as tape:
            values = loss(*variables, **options)
        gradients = tape.gradient(values, variables)
        assert np.isfinite(values).all()
        for gradient in gradients:
            assert np.isfinite(tf.cast(gradient, tf.float32)).all()
        return values.numpy(), gradients

    @pytest.mark.parametrize("loss", LOSSES)
    def test_at_the_poles(self, loss):
        queries = np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32)
        for items, tau in itertools.product((queries, -queries), (0.002, 1.0)):
            temperature = np.full(2, tau, np.float32)
            self.assert_finite(loss, queries, items, temperature, symmetric_weight=1.0)
            if loss is beta_nce:
                for delta_beta in (-0.9, 2.0):
                    self.assert_finite(loss, queries, items, temperature, delta_beta=delta_beta)

    def test_a_positive_near_the_opposite_pole_is_called_back(self):
        angle = np.pi - 1e-3
        queries = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
        items = np.array([[np.cos(angle), np.sin(angle)], [0.0, 1.0]], np.float32)
        tau = np.full(2, 0.05, np.float32)
        _, (_, gradient, _) = self.assert_finite(beta_nce, queries, items, tau)
        # Descent must raise the item's first coordinate's cosine: move it along +sin.
        assert gradient[0, 1] < -0.1

    @pytest.mark.parametrize("loss", LOSSES)
    def test_a_batch_of_one_has_no_loss(self, loss):
        queries, items, tau = random_batch(14, batch=1)
        values, gradients = self.assert_finite(loss, queries, items, tau, symmetric_weight=1.0)
        np.testing.assert_array_equal(values, [0.0])
        for gradient in gradients:
            np.testing.assert_allclose(gradient, np.zeros_like(gradient), atol=1e-15)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_with_all_negatives_masked_there_is_no_loss(self, loss):
        queries, items, tau = (value.astype(np.float32) for value in random_batch(15))
        negatives = Negatives(item_ids=[7] * BATCH)
        values, gradients = self.assert_finite(
            loss, queries, items, tau, negatives=negatives, symmetric_weight=1.0
        )
        np.testing.assert_array_equal(values, np.zeros(BATCH))
        for gradient in gradients:
            np.testing.assert_allclose(gradient, np.zeros_like(gradient), atol=1e-6)

    @pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_half_precision_vectors_give_float32_losses(self, loss, dtype):
        queries, items, _ = random_batch(16)
        queries, items = tf.cast(queries, dtype), tf.cast(items, dtype)
        tau = np.full(BATCH, 0.002, np.float32)
        values, gradients = self.assert_finite(loss, queries, items, tau)
        assert values.dtype == np.float32
        assert gradients[0].dtype == dtype
        # The rounding of the input is all that half precision may cost.
        exact = loss(*(tf.cast(value, tf.float64) for value in (queries, items, tau)))
        np.testing.assert_allclose(values, exact, rtol=1e-5, atol=1e-3)

    def test_tiny_losses_keep_their_digits_at_the_smallest_tau(self):
        # Cosines .9 and .88: exp(-.02 / .002) is far below float32's step at a logit of 450.
        angles = np.arccos([0.9, 0.88])
        queries = np.array([[1.0, 0.0]] * 2, np.float32)
        items = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
        actual = exp_nce(queries, items, np.full(2, 0.002, np.float32))
        assert float(actual[0]) == pytest.approx(np.log1p(np.exp(-10.0)), rel=1e-3)


class TestRejections:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"symmetric_weight": -1.0},
                "symmetric_weight must be a finite number, 0 or more. Received: -1.0.",
            ),
            (
                {"symmetric_weight": float("nan")},
                "symmetric_weight must be a finite number, 0 or more. Received: nan.",
            ),
            (
                {"symmetric_weight": 1.0, "gamma": -0.5},
                "gamma must be a finite number, 0 or more. Received: -0.5.",
            ),
            (
                {"gamma": 0.5},
                "gamma corrects the symmetric term and requires symmetric_weight > 0. "
                "Received: gamma=0.5, symmetric_weight=0.0.",
            ),
            (
                {"symmetric_weight": 1.0, "gamma": 0.5},
                "gamma > 0 requires log_query_prior. Received: gamma=0.5, log_query_prior=None.",
            ),
        ],
    )
    def test_bad_weights(self, options, message):
        with pytest.raises(ValueError, match=oracle.exactly(message)):
            exp_nce(*random_batch(), **options)

    @pytest.mark.parametrize(
        ("queries", "items", "message"),
        [
            (
                np.zeros(4),
                np.zeros(4),
                "query_vectors must have the shape [B, n]. Received: shape (4,).",
            ),
            (
                np.zeros((3, 4)),
                np.zeros((2, 4)),
                "item_vectors must have the shape [B, n] with B = 3, n = 4. "
                "Received: shape (2, 4).",
            ),
        ],
    )
    def test_bad_vectors(self, queries, items, message):
        with pytest.raises(ValueError, match=oracle.exactly(message)):
            exp_nce(queries, items, 0.1)

    def test_bad_tau(self):
        queries, items, _ = random_batch()
        message = "tau must have the shape [] or [B] with B = 5. Received: shape (5, 1)."
        with pytest.raises(ValueError, match=oracle.exactly(message)):
            exp_nce(queries, items, np.ones((BATCH, 1)))

    def test_bad_delta_beta(self):
        queries, items, tau = random_batch()
        message = "delta_beta must have the shape [] or [B] with B = 5. Received: shape (3,)."
        with pytest.raises(ValueError, match=oracle.exactly(message)):
            beta_nce(queries, items, tau, delta_beta=np.ones(3))


def test_positive_cosines_are_rowwise_and_do_not_depend_on_length():
    queries = np.array([[3.0, 0.0], [0.0, 0.5]])
    items = np.array([[6.0, 8.0], [0.0, -2.0]])
    np.testing.assert_allclose(positive_cosines(queries, items), [0.6, -1.0], atol=1e-15)


def test_positive_cosines_never_leave_their_range_by_rounding():
    vectors = tf.constant(np.random.default_rng(0).normal(size=(2000, 7)), tf.float32)
    cosines = positive_cosines(vectors, vectors)
    assert float(tf.reduce_max(cosines)) <= 1.0
    assert float(tf.reduce_min(positive_cosines(vectors, -vectors))) >= -1.0


def test_a_zero_vector_has_cosine_zero_and_a_finite_gradient():
    query = tf.Variable([[0.0, 0.0]])
    with tf.GradientTape() as tape:
        cosine = positive_cosines(query, tf.constant([[1.0, 0.0]]))
    assert cosine.numpy() == [0.0]
    assert np.isfinite(tape.gradient(cosine, query)).all()

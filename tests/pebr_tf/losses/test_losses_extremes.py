"""InfoNCE, ExpNCE and BetaNCE at the ends of their domain, and what they reject."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from losses_oracle import BATCH, exactly, random_batch, tau_for

from pebr_tf.losses import Negatives, beta_nce, exp_nce, info_nce

LOSSES = [info_nce, exp_nce, beta_nce]


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
            temperature = tau_for(loss, np.full(2, tau, np.float32))
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
        values, gradients = self.assert_finite(
            loss, queries, items, tau_for(loss, tau), symmetric_weight=1.0
        )
        np.testing.assert_array_equal(values, [0.0])
        for gradient in gradients:
            np.testing.assert_allclose(gradient, np.zeros_like(gradient), atol=1e-15)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_with_all_negatives_masked_there_is_no_loss(self, loss):
        queries, items, tau = (value.astype(np.float32) for value in random_batch(15))
        negatives = Negatives(
            item_ids=[7] * BATCH, extra_cosines=np.ones((BATCH, 2)), extra_item_ids=[7, 7]
        )
        values, gradients = self.assert_finite(
            loss, queries, items, tau_for(loss, tau), negatives=negatives, symmetric_weight=1.0
        )
        np.testing.assert_array_equal(values, np.zeros(BATCH))
        for gradient in gradients:
            np.testing.assert_allclose(gradient, np.zeros_like(gradient), atol=1e-6)

    @pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_half_precision_vectors_give_float32_losses(self, loss, dtype):
        queries, items, _ = random_batch(16)
        queries, items = tf.cast(queries, dtype), tf.cast(items, dtype)
        tau = tau_for(loss, np.full(BATCH, 0.002, np.float32))
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
                {"symmetric_weight": 1.0, "gamma": -0.5},
                "gamma must be a finite number, 0 or more. Received: -0.5.",
            ),
            (
                {"symmetric_weight": float("nan")},
                "symmetric_weight must be a finite number, 0 or more. Received: nan.",
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
    @pytest.mark.parametrize("loss", LOSSES)
    def test_bad_weights(self, loss, options, message):
        queries, items, tau = random_batch()
        with pytest.raises(ValueError, match=exactly(message)):
            loss(queries, items, tau_for(loss, tau), **options)

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
            (
                np.zeros((3, 4)),
                np.zeros((3, 5)),
                "item_vectors must have the shape [B, n] with B = 3, n = 4. "
                "Received: shape (3, 5).",
            ),
        ],
    )
    @pytest.mark.parametrize("loss", LOSSES)
    def test_bad_vectors(self, loss, queries, items, message):
        with pytest.raises(ValueError, match=exactly(message)):
            loss(queries, items, 0.1)

    @pytest.mark.parametrize("loss", [exp_nce, beta_nce])
    def test_bad_tau(self, loss):
        queries, items, _ = random_batch()
        message = "tau must have the shape [] or [B] with B = 5. Received: shape (5, 1)."
        with pytest.raises(ValueError, match=exactly(message)):
            loss(queries, items, np.ones((BATCH, 1)))

    def test_bad_delta_beta(self):
        queries, items, tau = random_batch()
        message = "delta_beta must have the shape [] or [B] with B = 5. Received: shape (3,)."
        with pytest.raises(ValueError, match=exactly(message)):
            beta_nce(queries, items, tau, delta_beta=np.ones(3))

    def test_a_tau_for_each_query_is_not_info_nce(self):
        queries, items, tau = random_batch()
        message = (
            "info_nce requires one scalar tau; a temperature for each query makes it exp_nce. "
            "Received: tau of shape (5,)."
        )
        with pytest.raises(ValueError, match=exactly(message)):
            info_nce(queries, items, tau)

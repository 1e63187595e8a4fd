"""The law head in training: its likelihood by SciPy, and that the towers do not learn from it."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from pebr_tf.losses import law_head as module
from pebr_tf.losses.law_head import LawHead, coverage_distance, law_term
from pebr_tf.losses.layers import BetaNCE


@pytest.fixture(scope="module")
def batch():
    generator = np.random.default_rng(0)
    queries = generator.normal(size=(40, 16))
    items = queries + 0.4 * generator.normal(size=(40, 16))
    unit = [(v / np.linalg.norm(v, axis=1, keepdims=True)).astype("f4") for v in (queries, items)]
    tau = generator.uniform(0.03, 0.2, 40).astype("f4")
    frequency = generator.integers(1, 500, 40).astype("f4")
    return *unit, tau, frequency, np.arange(40) % 4 == 0


@pytest.fixture
def head():
    head = LawHead()
    generator = np.random.default_rng(1)
    head.law_weights.linear.assign(generator.normal(size=(3, 2)) / 3)
    head.law_weights.outer.assign(generator.normal(size=(8, 2)) / 5)
    return head


def by_hand(head, queries, items, tau, frequency, held_out):
    """The term in NumPy and SciPy, a pair at a time."""
    weights, terms, transformed = head.get_law(), [], []
    for row in np.flatnonzero(held_out):
        cosines = items.astype(float) @ queries[row].astype(float)
        z = (1 + cosines) / 2
        level = np.log(np.mean(z ** (1 / tau[row])))
        inputs = np.array([np.log(tau[row]), tau[row] * level, np.log1p(frequency[row])])
        x = np.clip((inputs - weights.center) / weights.scale, -4, 4)
        hidden = np.tanh(x @ weights.inner + weights.inner_bias)
        logit, concentration = weights.bias + x @ weights.linear + hidden @ weights.outer
        mean, concentration = 1 / (1 + np.exp(-logit)), np.exp(np.clip(concentration, -2, 9))
        relevant = stats.beta(mean * concentration + 0.05, (1 - mean) * concentration + 0.05)
        noise = 1 / (1 + np.exp(-weights.noise[0] - weights.noise[1] * x[2]))
        total = z.mean() * (1 - z.mean()) / z.var() - 1
        background = stats.beta(z.mean() * total, (1 - z.mean()) * total)
        density = (1 - noise) * relevant.pdf(z[row]) + noise * background.pdf(z[row])
        terms.append(np.log(density / 2))
        transformed.append((1 - noise) * relevant.cdf(z[row]) + noise * background.cdf(z[row]))
    return -np.mean(terms), np.sort(transformed)


@pytest.mark.parametrize("interval", [1, 10**9])
def test_the_term_is_likelihood_and_coverage(batch, head, monkeypatch, interval):
    monkeypatch.setattr(module, "COVERAGE_INTERVAL", interval)
    likelihood, transformed = by_hand(head, *batch)
    even = (np.arange(len(transformed)) + 0.5) / len(transformed)
    coverage = np.mean((transformed - even) ** 2) if interval == 1 else 0
    received = law_term(head, *map(tf.constant, batch))
    assert float(received) == pytest.approx(likelihood + coverage, abs=1e-4)


def test_only_the_head_learns_from_it(batch, head, monkeypatch):
    monkeypatch.setattr(module, "COVERAGE_INTERVAL", 1)
    queries, items, tau = (tf.Variable(each) for each in batch[:3])
    with tf.GradientTape() as tape:
        term = law_term(head, queries, items, tau, *map(tf.constant, batch[3:]))
    gradients = tape.gradient(term, [queries, items, tau, *head.trainable_weights])
    assert gradients[:3] == [None] * 3
    assert all(np.abs(gradient.numpy()).max() > 0 for gradient in gradients[3:])


def test_the_layer_adds_the_term_to_the_same_gradients_of_the_towers(batch):
    queries, items, tau = (tf.Variable(each) for each in batch[:3])
    frequency, held_out = map(tf.constant, batch[3:])
    weight = 1 - tf.cast(held_out, tf.float32)
    layer, plain = BetaNCE({}, law_weight=2.0), BetaNCE({}, law_weight=0.0)
    assert plain.law_head is None
    values, gradients = [], []
    for each in (layer, plain):
        with tf.GradientTape() as tape:
            loss = each(queries, items, tau, None, weight, frequency, held_out)
        values.append(float(loss))
        gradients.append(tape.gradient(loss, [queries, items, tau]))
    term = law_term(layer.law_head, *map(tf.constant, batch))
    assert values[0] - values[1] == pytest.approx(2 * float(term), abs=1e-4)
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs))
    assert float(layer(queries, items, tau, None, weight)) == pytest.approx(values[1], abs=1e-6)


def test_a_batch_without_held_out_pairs_has_no_term(batch, head):
    nothing = tf.zeros([40], tf.bool)
    with tf.GradientTape() as tape:
        term = law_term(head, *map(tf.constant, batch[:4]), nothing)
    assert float(term) == 0
    for gradient in tape.gradient(term, head.trainable_weights):
        assert not gradient.numpy().any()


def test_coverage_is_least_for_even_values():
    even = tf.constant((np.arange(20) + 0.5) / 20)
    assert float(coverage_distance(even)) == pytest.approx(0, abs=1e-15)
    assert float(coverage_distance(tf.reverse(even, [0]))) == pytest.approx(0, abs=1e-15)
    assert float(coverage_distance(even**2)) > 0.01

"""Slow, loop-by-loop NumPy versions of the losses, written from the paper and not from the code."""

import re

import numpy as np
import tensorflow as tf

BATCH, DIMENSION = 5, 4


def cosine(left, right):
    return float(np.dot(left, right) / np.sqrt(np.dot(left, left) * np.dot(right, right)))


def exp_score(s, tau, delta_beta=0.0):
    del delta_beta
    return s / tau


def beta_score(s, tau, delta_beta=0.0):
    z = (1 + s) / 2
    return np.log(z) / tau + delta_beta * np.log(1 - z)


def is_removed(i, j, facts):
    """Whether item j may not serve as a negative of query i."""
    if "item_ids" in facts:
        item_id = facts["item_ids"][j]
        if item_id == facts["item_ids"][i]:
            return True
        if "known_positive_ids" in facts and item_id in list(facts["known_positive_ids"][i]):
            return True
    return "query_ids" in facts and facts["query_ids"][j] == facts["query_ids"][i]


def candidates_of(i, queries, items, facts):
    """(cosine, log_q, removed) of every candidate of query i but the positive."""
    found = []
    for j in range(len(items)):
        if j == i:
            continue
        log_q = facts["log_q"][j] if "log_q" in facts else 0.0
        found.append((cosine(queries[i], items[j]), log_q, is_removed(i, j, facts)))
    return found


def contrastive(
    queries, items, tau, score, facts=None, symmetric_weight=0.0, gamma=0.0, delta_beta=0.0
):
    """[B] losses; tau and delta_beta are scalars or [B]."""
    facts = facts or {}
    batch = len(queries)
    tau = np.broadcast_to(tau, batch)
    delta_beta = np.broadcast_to(delta_beta, batch)
    own_log_q = facts.get("log_q", np.zeros(batch))
    prior = facts.get("log_query_prior", np.zeros(batch))
    losses = []
    for i in range(batch):
        positive = score(cosine(queries[i], items[i]), tau[i], delta_beta[i])
        total = np.exp(positive - own_log_q[i])
        for s, log_q, removed in candidates_of(i, queries, items, facts):
            if not removed:
                total += np.exp(score(s, tau[i], delta_beta[i]) - log_q)
        loss = np.log(total) - (positive - own_log_q[i])
        if symmetric_weight:
            column = np.exp(positive - gamma * prior[i])
            for j in range(batch):
                if j == i or is_removed(j, i, facts):
                    continue
                other = score(cosine(queries[j], items[i]), tau[j], delta_beta[j])
                column += np.exp(other - gamma * prior[j])
            loss += symmetric_weight * (np.log(column) - (positive - gamma * prior[i]))
        losses.append(loss)
    return np.array(losses)


def finite_difference(function, argument, step=1e-6):
    """Central differences of a scalar function of one float64 array."""
    gradient = np.zeros_like(argument)
    for index in np.ndindex(*argument.shape):
        up, down = argument.copy(), argument.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


def assert_gradients(function, arguments, rtol=1e-5, atol=1e-8):
    """Compares TensorFlow's gradients of a scalar function of float64 arrays with differences."""
    function = tf.function(function, autograph=False)
    variables = [tf.Variable(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        total = function(*variables)
    for index, gradient in enumerate(tape.gradient(total, variables)):

        def alone(argument, index=index):
            replaced = [*arguments[:index], argument, *arguments[index + 1 :]]
            return float(function(*map(tf.constant, replaced)))

        expected = finite_difference(alone, arguments[index])
        np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=atol)


def unit_rows(generator, *shape):
    vectors = generator.normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def exactly(message):
    """A pattern for `pytest.raises(match=)` that the whole message must meet."""
    return f"^{re.escape(message)}$"


def random_batch(seed=0, batch=BATCH):
    """Unit queries and items [batch, DIMENSION] and temperatures [batch]."""
    generator = np.random.default_rng(seed)
    return (
        unit_rows(generator, batch, DIMENSION),
        unit_rows(generator, batch, DIMENSION),
        generator.uniform(0.1, 0.5, batch),
    )

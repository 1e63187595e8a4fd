"""Slow, loop-by-loop NumPy versions of the losses, written from the paper and not from the code."""

import functools

import numpy as np
import scipy.stats

BATCH, DIMENSION = 6, 4


def cosine(left, right):
    return float(np.dot(left, right) / np.sqrt(np.dot(left, left) * np.dot(right, right)))


def exp_score(s, tau, delta_beta):
    return s / tau


def beta_score(s, tau, delta_beta):
    z = (1 + s) / 2
    return np.log(z) / tau + delta_beta * np.log(1 - z)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def is_removed(i, j, facts):
    """Whether item j may not serve as a negative of query i."""
    ids = (facts[name] for name in ("item_ids", "query_ids") if name in facts)
    return any(each[i] == each[j] for each in ids)


def negatives_of(i, queries, items, facts):
    """The items that are negatives of query i, and their cosines with it."""
    others = [j for j in range(len(items)) if j != i and not is_removed(i, j, facts)]
    return others, [cosine(queries[i], items[j]) for j in others]


def contrastive(
    queries, items, tau, score, facts=None, symmetric_weight=0.0, gamma=0.0, delta_beta=0.0
):
    """[B] losses; tau and delta_beta are scalars or [B]."""
    facts = facts or {}
    batch = len(queries)
    tau = np.broadcast_to(tau, batch)
    delta_beta = np.broadcast_to(delta_beta, batch)
    log_q = facts.get("log_q", np.zeros(batch))
    prior = facts.get("log_query_prior", np.zeros(batch))
    losses = []
    for i in range(batch):
        positive = score(cosine(queries[i], items[i]), tau[i], delta_beta[i])
        total = np.exp(positive - log_q[i])
        for j, s in zip(*negatives_of(i, queries, items, facts), strict=True):
            total += np.exp(score(s, tau[i], delta_beta[i]) - log_q[j])
        loss = np.log(total) - (positive - log_q[i])
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


def pointwise(queries, items, tau, facts):
    """[B] losses; tau is [B]."""
    losses = []
    for i in range(len(queries)):
        _, negatives = negatives_of(i, queries, items, facts)
        loss = -np.log(sigmoid(cosine(queries[i], items[i]) / tau[i]))
        losses.append(loss - sum(np.log(sigmoid(-s / tau[i])) for s in negatives))
    return losses


def mle(queries, items, tau, facts):
    """[B] losses by Bayes' rule, with the odds of one positive to all negatives; tau is [B]."""
    shift = (queries.shape[1] - 3) / 2

    def density(s, alpha, beta):
        return scipy.stats.beta.pdf(s, alpha, beta, loc=-1, scale=2)

    losses = []
    for i in range(len(queries)):
        _, negatives = negatives_of(i, queries, items, facts)
        cosines = np.array([*negatives, cosine(queries[i], items[i])])
        f = density(cosines, 1 + 1 / tau[i] + shift, 1 + shift)
        h = density(cosines, 1 + shift, 1 + shift)
        is_relevant = f / (f + len(negatives) * h)
        losses.append(-np.log(is_relevant[-1]) - np.log1p(-is_relevant[:-1]).sum())
    return losses


LOOPS = {
    "pointwise": pointwise,
    "mle": mle,
    "exp_nce": functools.partial(contrastive, score=exp_score),
    "beta_nce": functools.partial(contrastive, score=beta_score),
}


def random_batch(seed=0, batch=BATCH):
    """Unit queries and items [batch, DIMENSION] and temperatures [batch]."""
    generator = np.random.default_rng(seed)
    queries, items = generator.normal(size=(2, batch, DIMENSION))
    return (
        queries / np.linalg.norm(queries, axis=1, keepdims=True),
        items / np.linalg.norm(items, axis=1, keepdims=True),
        generator.uniform(0.1, 0.5, batch),
    )

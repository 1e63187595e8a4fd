"""Small towers whose relevant items are drawn from the query's own softmax."""

import numpy as np

from pebr_tf.cutoff import Pairs, Queries


def unit(vectors):
    """Rows of length 1."""
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make_world(queries=60, items=300, dimension=8, seed=0):
    """Items, queries and relevant pairs; tau is a function of the query."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(8, dimension))
    corpus = unit(
        centres[generator.integers(8, size=items)] + generator.normal(size=(items, dimension))
    )
    vectors = unit(
        centres[generator.integers(8, size=queries)]
        + 0.5 * generator.normal(size=(queries, dimension))
    )
    tau = (0.06 * np.exp(vectors[:, 0])).astype(np.float32)
    rows, places = [], []
    for row in range(queries):
        logits = vectors[row] @ corpus.T / tau[row]
        chance = np.exp(logits - logits.max())
        drawn = generator.choice(items, generator.integers(1, 9), p=chance / chance.sum())
        for item in np.unique(drawn):
            rows.append(row)
            places.append(item)
    strata = generator.integers(0, 3, queries)
    return corpus, Queries(vectors, tau, strata), Pairs(np.array(rows), np.array(places))

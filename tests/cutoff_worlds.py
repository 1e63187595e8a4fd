"""Small towers whose relevant items are drawn from the query's own softmax."""

from dataclasses import replace

import numpy as np

from pebr_tf.cutoff.candidates import ClickedPairs, QueryVectors, collect_candidates
from pebr_tf.cutoff.level_temperature import level_temperatures_for
from pebr_tf.metrics.ranked import RankedLists, Ranks


def unit(vectors):
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
        places += np.unique(drawn).tolist()
        rows += [row] * (len(places) - len(rows))
    strata = generator.integers(0, 3, queries)
    relevant = ClickedPairs(np.array(rows), np.array(places))
    return corpus, QueryVectors(vectors, tau, strata), relevant


def clicks_by_breadth():
    """600 queries whose clicks lie, uniformly, in the first 20 or 200 ranks, by breadth."""
    corpus, queries, relevant = make_world(600, 300, seed=5)
    generator = np.random.default_rng(0)
    breadth = np.where(generator.random(600) < 0.5, 2.0, 500.0)
    queries = replace(queries, breadth=breadth)
    base = collect_candidates(corpus, queries, relevant, "beta", level_temperatures_for(None), 300)
    # Broad queries have fewer clicks here: each query counts once all the same.
    size = np.where(breadth > 100, 4, 12)
    rows = np.repeat(np.arange(600), size)
    ranks = np.floor(generator.random(len(rows)) * np.where(breadth > 100, 200, 20)[rows])
    pairs = np.unique(rows * 300 + ranks.astype(int))
    rows, ranks = np.divmod(pairs, 300)
    return replace(
        base,
        relevant=Ranks(rows, ranks),
        seen=np.zeros(len(rows), bool),
        totals=np.bincount(rows, minlength=600),
    )


def random_lists(seed, queries=12, candidates=20, ties=False, short=False):
    """Falling scores; up to six relevant items per query, some of them no candidates.

    With `short`, some rows have fewer candidates, and scores count less an offset of the query.
    """
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(queries, candidates)).astype(np.float32)
    scores = -np.sort(-(np.round(scores) if ties else scores), axis=1)
    if short:
        scores[::5, candidates // 2 :] = -np.inf
    rows, ranks = [], []
    for row in range(queries):
        chosen = generator.choice(candidates + 2, generator.integers(1, 7), replace=False)
        rows += [row] * len(chosen)
        ranks += np.minimum(chosen, candidates).tolist()
    offsets = generator.integers(0, 2, queries).astype(np.float32) if short else None
    return RankedLists(scores, Ranks(np.array(rows), np.array(ranks)), np.bincount(rows), offsets)

"""The fitted law finds the laws that clicks were drawn from, by shares that SciPy knows."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from cutoff_worlds import make_world

from experiments.policies.fitted_law import CLICKS, _clicks, fit_law
from pebr_tf.cutoff.candidates import collect_candidates
from pebr_tf.metrics.ranked import Ranks


def drawn_candidates(corpus_size=400, depth=400, queries=600):
    """Clicks whose z is Beta(40, 4) or Beta(20, 10), by the sign of a coordinate.

    Cosines are a grid from 1 to -1, so that a click is the item next to what was drawn.
    """
    corpus, found, relevant = make_world(queries, 50, seed=3)
    # Far apart, so that no query lies between the two laws.
    vectors = found.vectors + np.sign(found.vectors[:, :1]) * np.eye(1, found.vectors.shape[1])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = replace(found, vectors=vectors.astype(np.float32))
    base = collect_candidates(corpus, found, relevant, "beta", (1.0,), 50)
    generator = np.random.default_rng(0)
    narrow = found.vectors[:, 0] > 0
    grid = np.linspace(1, -1, corpus_size)
    rows = np.repeat(np.arange(queries), 10)
    alpha, beta = np.where(narrow, 40, 20)[rows], np.where(narrow, 4, 10)[rows]
    z = generator.beta(alpha, beta)
    ranks = np.rint((1 - z) * (corpus_size - 1)).astype(int)
    pairs = np.unique(rows * corpus_size + ranks)
    rows, ranks = np.divmod(pairs, corpus_size)
    candidates = replace(
        base,
        cosines=np.broadcast_to(grid[:depth].astype(np.float32), (queries, depth)).copy(),
        relevant=Ranks(rows, np.minimum(ranks, depth)),
        seen=np.zeros(len(rows), bool),
        totals=np.bincount(rows, minlength=queries),
        corpus_size=corpus_size,
    )
    return candidates, narrow


@pytest.fixture(scope="module")
def fitted(quick_fits):
    """Candidates of every item, which law each query has, and the fitted policy."""
    candidates, narrow = drawn_candidates()
    return candidates, narrow, fit_law(candidates)


@pytest.mark.parametrize("depth", [400, pytest.param(140, marks=pytest.mark.slow)])
def test_the_laws_that_clicks_were_drawn_from_are_found(depth, fitted):
    """With 140 candidates of 400, four in ten clicks of the broad law are below the last."""
    if depth == 400:
        candidates, narrow, policy = fitted
    else:
        candidates, narrow = drawn_candidates(depth=depth)
        policy = fit_law(candidates)
    below = candidates.relevant.ranks == depth
    assert np.mean(below[~narrow[candidates.relevant.rows]]) == pytest.approx(
        0.41 * (depth == 140), abs=0.02
    )
    alpha, beta = policy.head(tf.constant(candidates.queries.vectors))
    found = scipy.stats.beta(alpha.numpy(), beta.numpy())
    for chosen, expected in ((narrow, (40, 4)), (~narrow, (20, 10))):
        for share in (0.25, 0.5, 0.75):
            z = scipy.stats.beta.ppf(share, *expected)
            assert found.cdf(z)[chosen].mean() == pytest.approx(share, abs=0.06)


def test_every_query_has_a_weight_of_one():
    candidates, _ = drawn_candidates(depth=80, queries=100)
    rows = np.append(candidates.relevant.rows, np.zeros(30, int))
    ranks = np.append(candidates.relevant.ranks, np.arange(30))
    totals = np.bincount(rows, minlength=100)
    candidates = replace(candidates, relevant=Ranks(rows, ranks), totals=totals)
    cosines, weights, below = _clicks(candidates, np.random.default_rng(0))
    assert cosines.shape == weights.shape == (100, CLICKS)
    np.testing.assert_allclose(weights.sum(axis=1) + below[:, 1], 1, rtol=1e-5)
    missed = np.bincount(rows[ranks == 80], minlength=100) / candidates.totals
    np.testing.assert_allclose(below[:, 1], missed, rtol=1e-5)
    np.testing.assert_allclose(below[:, 0], candidates.cosines[0, -1])
    for row in range(100):
        clicked = candidates.cosines[row, ranks[(rows == row) & (ranks < 80)]]
        assert np.isin(cosines[row][weights[row] > 0], clicked).all()

"""The background law against a real sample of items."""

import numpy as np
import pytest
from scipy import stats

from pebr_tf.distributions import background_law


@pytest.fixture(scope="module")
def corpus():
    """20,000 unit vectors in 16 dimensions that lean to one side, as real item towers do."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(20000, 16)) * np.linspace(0.3, 1.5, 16) + 0.4
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def queries():
    vectors = np.random.default_rng(1).normal(size=(5, 16))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def mean_of(law):
    return 2 * stats.beta.mean(law.alpha, law.beta) - 1


def test_its_moments_and_its_bulk_are_those_of_the_corpus(corpus, queries):
    law = background_law(queries, corpus.mean(axis=0), np.cov(corpus.T, bias=True))
    cosines = queries @ corpus.T
    np.testing.assert_allclose(mean_of(law), cosines.mean(axis=1), atol=1e-9)
    variance = [4 * stats.beta.var(a, b) for a, b in zip(law.alpha, law.beta, strict=True)]
    np.testing.assert_allclose(variance, cosines.var(axis=1), rtol=1e-9)
    cosines = np.sort(cosines, axis=1)[:, ::50]
    shares = np.arange(cosines.shape[1]) / cosines.shape[1]
    for row in range(len(queries)):
        cdf = stats.beta.cdf((1 + cosines[row]) / 2, law.alpha[row], law.beta[row])
        assert np.max(np.abs(cdf - shares)) < 0.05


def test_it_takes_and_gives_float32(corpus, queries):
    arguments = (queries, corpus.mean(axis=0), np.cov(corpus.T))
    law = background_law(*(a.astype(np.float32) for a in arguments))
    assert law.cdf(0.0).dtype == np.float32
    np.testing.assert_allclose(mean_of(law), queries @ corpus.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("covariance", [np.zeros((2, 2)), np.eye(2) * 50.0])
@pytest.mark.parametrize("mean", [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
def test_degenerate_corpora_give_a_law_all_the_same(mean, covariance):
    law = background_law(np.array([[1.0, 0.0]]), np.array(mean), covariance)
    assert np.isfinite(law.threshold(0.5)[0])

"""Log odds of laws against SciPy and the exact laws, and the corpus law against its definition."""

import numpy as np
import pytest
import scipy.stats

from experiments.policies import CorpusLawPolicy
from experiments.policies.law_odds import law_log_odds, share_kept


def falling_cosines(alpha, beta, seed=0, count=200):
    """[Q, count] cosines within six standard deviations of the mean, and at random."""
    law = scipy.stats.beta(alpha[:, None], beta[:, None])
    generator = np.random.default_rng(seed)
    near = law.mean() + law.std() * generator.uniform(-6, 6, (len(alpha), count // 2))
    z = np.concatenate([near, generator.random((len(alpha), count // 2))], axis=1)
    return -np.sort(-(2 * np.clip(z, 0.001, 1 - 1e-6) - 1), axis=1)


def test_log_odds_are_those_of_scipy():
    generator = np.random.default_rng(1)
    alpha = np.exp(generator.uniform(np.log(5), np.log(2_000), 100))
    beta = np.exp(generator.uniform(np.log(0.5), np.log(2_000), 100))
    cosines = falling_cosines(alpha, beta)
    law = scipy.stats.beta(alpha[:, None], beta[:, None])
    expected = law.logcdf((1 + cosines) / 2) - law.logsf((1 + cosines) / 2)
    known = np.isfinite(expected)
    assert known.mean() > 0.6
    received = law_log_odds(cosines, alpha, beta)
    assert received.dtype == np.float32
    np.testing.assert_allclose(received[known], expected[known], atol=0.02, rtol=1e-3)


def test_log_odds_of_the_exponential_family_are_those_of_the_exact_law():
    alpha, beta = np.array([8.0, 30.0, 60.0]), np.array([10.0, 3.0, 70.0])
    tau = np.array([0.02, 0.1, 1.0])
    cosines = falling_cosines(alpha, beta, count=60)
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    cdf = np.empty(cosines.shape)
    for row, (a, b, t) in enumerate(zip(alpha, beta, tau, strict=True)):
        logs = scipy.stats.beta.logpdf(grid, a, b) + 2 * grid / t
        below = np.cumsum(np.exp(logs - logs.max()))
        cdf[row] = np.interp((1 + cosines[row]) / 2, grid, below / below[-1])
    survival = 1 - cdf
    known = (cdf > 1e-6) & (survival > 1e-6)
    assert known.sum(axis=1).min() > 5
    received = law_log_odds(cosines, alpha, beta, 2 / tau)
    np.testing.assert_allclose(received[known], np.log(cdf[known] / survival[known]), atol=0.02)


def test_far_tails_are_told_apart_and_what_is_missing_stays_missing():
    cosines = np.array([[1.0, 0.99999, 0.9, -0.9, -0.99, -np.inf]], np.float32)
    scores = law_log_odds(cosines, [500.0], [500.0])[0]
    assert (np.diff(scores[:5]) < 0).all()
    assert np.isfinite(scores[:5]).all()
    assert scores[5] == -np.inf


def test_the_share_kept_is_the_share_of_the_law_above():
    cosines = np.array([[0.8, 0.5, 0.1]], np.float32)
    kept = share_kept(law_log_odds(cosines, [12.0], [4.0]))
    np.testing.assert_allclose(kept, scipy.stats.beta.sf((1 + cosines) / 2, 12, 4), atol=1e-3)
    assert share_kept([-800.0, 800.0]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("family", ["beta", "exponential"])
def test_the_law_is_the_background_times_the_density_ratio(world, family):
    """Moments by hand over all cosines; the ratio is z^(1 / tau) or exp(s / tau)."""
    corpus, queries, _ = world
    alpha, beta, rate = CorpusLawPolicy.of(corpus).parameters(queries, family)
    z = (1 + queries.vectors.astype(np.float64) @ corpus.T.astype(np.float64)) / 2
    mean, variance = z.mean(axis=1), z.var(axis=1)
    concentration = mean * (1 - mean) / variance - 1
    point = np.array([0.2, 0.7])[:, None]
    density = scipy.stats.beta.logpdf(point, mean * concentration, (1 - mean) * concentration)
    ratio = np.log(point) / queries.tau if family == "beta" else (2 * point - 1) / queries.tau
    expected = np.diff(density + ratio, axis=0)
    logs = (alpha - 1) * np.log(point) + (beta - 1) * np.log1p(-point)
    received = np.diff(logs + rate * point, axis=0)
    np.testing.assert_allclose(received, expected, rtol=1e-5)

"""Every law against mpmath on a wide grid, float32 in and out: the promise of docs/maths.md."""

import itertools
import random

import mpmath as mp
import numpy as np
import pytest
from distribution_oracles import Oracle
from scipy import special

from pebr_tf.distributions import Beta, TruncatedExponential

SHAPES = [1e-2, 0.3, 1.0, 7.0, 150.0, 1e4]
TAUS = [0.002, 0.0113, 0.05, 0.3, 1.0]
DIMENSIONS = [3, 64, 768]
RECALLS = np.array([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6], np.float32)
TOLERANCE = 1e-6


def grid(count, *axes):
    """Columns [N, 1] of the corners of a grid, and of `count` points of it, always the same."""
    corners = itertools.product(*((axis[0], axis[-1]) for axis in axes))
    points = random.Random(0).sample(list(itertools.product(*axes)), count)
    rows = np.array(sorted({*corners, *points}), np.float32)
    return np.split(rows, len(axes), axis=1)


def oracles_of(*columns):
    return [Oracle(*map(float, row)) for row in np.concatenate(columns, axis=1)]


def check_against_oracles(law, oracles, keeps=RECALLS[::2]):
    """Thresholds, CDF, survival, density of a law with a row for each oracle."""
    thresholds = law.threshold(keeps).numpy()
    assert thresholds.dtype == np.float32
    assert np.all(np.diff(thresholds, axis=1) <= 0)
    for oracle, row in zip(oracles, thresholds, strict=True):
        for recall, threshold in zip(keeps, row, strict=True):
            # The true threshold is within the tolerance iff the true CDF encloses 1 - recall there.
            below = 1 - mp.mpf(float(recall))
            assert oracle.cdf(max(float(threshold) - TOLERANCE, -1.0)) <= below + mp.mpf(10) ** -20
            assert oracle.cdf(min(float(threshold) + TOLERANCE, 1.0)) >= below - mp.mpf(10) ** -20

    inner = np.clip(thresholds[:, 1:-1], -1 + 1e-6, 1 - 1e-6)
    fixed = np.tile(np.array([-0.9, 0.3], np.float32), (len(oracles), 1))
    s = np.concatenate([inner, fixed], axis=1)

    def expected(name):
        rows = zip(oracles, s, strict=True)
        return np.array([[float(getattr(o, name)(float(v))) for v in row] for o, row in rows])

    cdf = expected("cdf")
    np.testing.assert_allclose(law.cdf(s), cdf, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(law.survival(s), 1 - cdf, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(law.log_prob(s), expected("log_prob"), rtol=1e-6, atol=1e-5)


@pytest.mark.slow
def test_beta_matches_mpmath():
    alpha, beta = grid(2, SHAPES, SHAPES)
    check_against_oracles(Beta(alpha, beta), oracles_of(alpha, beta))


def test_truncated_exponential_matches_mpmath():
    tau = np.array(TAUS, np.float32)[:, None]
    one = np.ones_like(tau)
    check_against_oracles(TruncatedExponential(tau), oracles_of(one, one, tau), RECALLS)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.0), (21.0, 1.0), (300.0, 40.0)])
def test_spherical_beta_matches_mpmath(alpha, beta, dimension):
    """Integrates h(x) * (1 - x^2)^((n - 3) / 2) as the paper's appendix writes it."""

    def density(x):
        h = (1 + x) ** (mp.mpf(alpha) - 1) * (1 - x) ** (mp.mpf(beta) - 1)
        return h * (1 - x**2) ** (mp.mpf(dimension - 3) / 2)

    law = Beta(np.float32(alpha), np.float32(beta)).on_sphere(dimension)
    middle = float(2 * law.alpha / (law.alpha + law.beta) - 1)
    s = np.float32(middle + 0.02)
    cuts = [-1, (middle - 1) / 2, middle]
    below = mp.quad(density, [*cuts, float(s)])
    above = mp.quad(density, [float(s), (float(s) + 1) / 2, 1])
    np.testing.assert_allclose(law.cdf(s), float(below / (below + above)), rtol=0, atol=TOLERANCE)


def test_beta_matches_scipy_on_a_dense_grid():
    """Also where tfp fails: its betaincinv(.5, .5, .5) is .62, and not the middle."""
    shapes = np.append(np.logspace(-2, 4, 13), 0.5).astype(np.float32)
    keeps = np.concatenate([RECALLS, np.linspace(0.01, 0.99, 15).astype(np.float32)])
    s = np.linspace(-1, 1, 41).astype(np.float32)
    alpha, beta = (values[..., None] for values in np.meshgrid(shapes, shapes))
    law, exact = Beta(alpha, beta), (alpha.astype(np.float64), beta.astype(np.float64))
    thresholds = 2 * special.betaincinv(*exact, 1.0 - keeps.astype(np.float64)) - 1
    np.testing.assert_allclose(law.threshold(keeps), thresholds, rtol=0, atol=TOLERANCE)
    cdf = special.betainc(*exact, (1 + s.astype(np.float64)) / 2)
    np.testing.assert_allclose(law.cdf(s), cdf, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(law.survival(s), 1 - cdf, rtol=0, atol=TOLERANCE)
    middle = Beta(shapes, shapes).threshold(0.5)
    np.testing.assert_allclose(middle, 0.0, atol=1e-7)

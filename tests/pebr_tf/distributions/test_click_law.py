"""The law of clicks against SciPy's Beta laws, and the law head's formulas at their ends."""

import numpy as np
import pytest
from gradients import assert_gradients
from scipy import stats

from pebr_tf.distributions import Beta
from pebr_tf.distributions.click_law import ClickLaw
from pebr_tf.distributions.query_law import initial_weights

ALPHA, BETA = np.array([60.0, 12.0, 300.0]), np.array([9.0, 3.0, 40.0])
NOISE = np.array([0.1, 0, 1])
BACKGROUND = (np.array([20.0, 30.0, 8.0]), np.array([18.0, 31.0, 9.0]))
COSINES = np.linspace(-0.9, 0.99, 41)[:, None]


@pytest.fixture(scope="module")
def law():
    return ClickLaw(Beta(ALPHA, BETA), Beta(*BACKGROUND), NOISE)


def test_a_mixture_of_two_beta_laws(law):
    z = (1 + COSINES) / 2
    relevant, background = stats.beta(ALPHA, BETA), stats.beta(*BACKGROUND)

    def mixed(name, at=z):
        return (1 - NOISE) * getattr(relevant, name)(at) + NOISE * getattr(background, name)(at)

    np.testing.assert_allclose(law.cdf(COSINES), mixed("cdf"), atol=1e-12)
    np.testing.assert_allclose(law.survival(COSINES), mixed("sf"), atol=1e-12)
    density = mixed("pdf") / 2
    inside = density > 1e-280
    np.testing.assert_allclose(law.log_prob(COSINES)[inside], np.log(density[inside]), rtol=1e-9)


def test_a_threshold_never_falls_into_the_background(law):
    shares = np.array([0.5, 0.95, 0.999])[:, None]
    wanted = 2 * stats.beta.isf(shares, ALPHA, BETA) - 1
    np.testing.assert_allclose(law.threshold(shares), wanted, atol=1e-6)


def test_the_gradient_goes_through_the_incomplete_beta_function():
    def survival(alpha, noise):
        law = ClickLaw(Beta(alpha, np.array([6.0])), Beta(np.array([9.0]), np.array([9.0])), noise)
        return law.survival(np.array([0.6]))[0]

    assert_gradients(survival, [np.array([30.0]), np.array([0.2])], step=1e-5)


def test_a_noise_share_outside_its_range():
    with pytest.raises(ValueError, match=r"noise_share must be in \[0, 1\]\. Received: 1\.2\."):
        ClickLaw(Beta(2.0, 3.0), Beta(1.0, 1.0), 1.2)


def test_laws_stay_in_their_domain_for_any_input():
    weights = initial_weights()._replace(linear=np.full((3, 2), 50.0), noise=np.array([0.0, 9.0]))
    extreme = np.array([1e-3, 0.05, 1.0])
    laws = weights.laws(extreme, -1 / extreme, np.array([0.0, 10, 1e9]))
    for parameter in (laws.alpha.numpy(), laws.beta.numpy()):
        assert ((parameter >= 0.05) & (parameter <= 1e4)).all()
    assert ((laws.noise_share.numpy() >= 0) & (laws.noise_share.numpy() <= 1)).all()
    laws.click_law(Beta(np.full(3, 2.0), np.full(3, 2.0))).cdf(np.zeros(3))

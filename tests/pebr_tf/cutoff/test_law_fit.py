"""The fitted law against the one that clicks were drawn from."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pebr_tf.cutoff import law_fit
from pebr_tf.cutoff.law_fit import HeldOutClicks, fit_law, fit_share_map
from pebr_tf.distributions.query_law import initial_weights

QUERIES, PAIRS = 1_500, 6


def drawn(seed):
    """Clicks whose laws and noise depend on the inputs, and what the truth is."""
    generator = np.random.default_rng(seed)
    tau = np.exp(generator.normal(-3, 0.3, QUERIES))
    level = generator.uniform(-9, -5, QUERIES)
    frequency = np.round(np.exp(generator.uniform(0, 6, QUERIES)))
    mean = 1 / (1 + np.exp(-(1.4 + 3 * (tau * level + 0.35))))
    concentration = np.exp(4.5 - 0.5 * (np.log(tau) + 3))
    noise = 1 / (1 + np.exp(3 - 0.3 * np.log1p(frequency)))
    alpha, beta = mean * concentration, (1 - mean) * concentration
    background = np.full(QUERIES, 30.0), np.full(QUERIES, 26.0)
    rows = np.repeat(np.arange(QUERIES), PAIRS)
    noisy = generator.random(len(rows)) < noise[rows]
    noise_z = generator.beta(background[0][rows], background[1][rows])
    z = np.where(noisy, noise_z, generator.beta(alpha[rows], beta[rows]))
    strata = np.where(frequency > 20, 0, 2)
    clicks = HeldOutClicks(2 * z - 1, rows, tau, level, frequency, *background, strata)
    return clicks, alpha, beta, noise, noisy


@pytest.fixture(scope="module")
def law():
    return fit_law(initial_weights(), drawn(0)[0])


def test_the_law_and_the_noise_that_clicks_were_drawn_from(law):
    clicks, alpha, beta, noise, _ = drawn(1)
    fitted = law.laws(*clicks.inputs())
    received, truth = stats.beta(fitted.alpha, fitted.beta), stats.beta(alpha, beta)
    assert np.mean(np.abs(received.mean() - truth.mean())) < 0.006
    assert np.mean(np.abs(received.std() / truth.std() - 1)) < 0.1
    for part in (clicks.frequency < 20, clicks.frequency >= 20):
        assert abs(np.mean(fitted.noise_share.numpy()[part] - noise[part])) < 0.02


def test_clicks_are_uniform_under_the_law_of_other_clicks(law):
    clicks, *_ = drawn(1)
    laws, background = clicks.laws(law)
    transformed = laws.click_law(background).cdf(clicks.cosines)
    assert stats.kstest(transformed, "uniform").statistic < 0.02


def shouldered(seed):
    """Clicks of which a fifth are at lower cosines: no Beta law has their shape."""
    clicks, alpha, beta, *_ = drawn(seed)
    generator = np.random.default_rng(seed + 10)
    lower = np.where(generator.random(len(clicks.rows)) < 0.2, 0.93, 1.0)
    z = lower * generator.beta(alpha[clicks.rows], beta[clicks.rows])
    return replace(clicks, cosines=2 * z - 1)


def test_clicks_of_another_shape_are_nearly_uniform_in_every_stratum():
    """The likelihood alone leaves a distance of .05 here, and .06 where queries are frequent."""
    law, clicks = fit_law(initial_weights(), shouldered(0)), shouldered(1)
    laws, background = clicks.laws(law)
    transformed = laws.click_law(background).cdf(clicks.cosines).numpy()
    frequent = (clicks.strata == 0)[clicks.rows]
    for part in (frequent, ~frequent, np.ones_like(frequent)):
        assert stats.kstest(transformed[part], "uniform").statistic < 0.03


def test_the_map_mends_a_law_that_is_wrong(law):
    """With a law that is too narrow, the map still keeps the share of the relevant clicks."""
    narrow = law._replace(bias=law.bias + np.array([0.1, 0.4]))
    shares = fit_share_map(narrow, drawn(0)[0])
    clicks, *_, noisy = drawn(1)
    laws, _ = clicks.laws(narrow)
    above = stats.beta.sf((1 + clicks.cosines) / 2, laws.alpha, laws.beta)[~noisy]
    for share in (0.3, 0.6, 0.9):
        wrong = np.mean(above <= share)
        kept = np.mean(above <= 1 - shares.cutoff(share))
        assert kept == pytest.approx(share, abs=0.02)
        assert abs(wrong - share) > 0.03
    assert shares.queries == QUERIES


def test_a_start_in_other_units_is_the_same_head():
    clicks, *_ = drawn(2)
    start = initial_weights()._replace(linear=np.ones((3, 2)) / 7, noise=np.array([-2.0, 0.4]))
    moved = law_fit._standardised(start, clicks)
    for before, after in zip(
        start._replace(low=np.full(3, -9.0), high=np.full(3, 9.0)).laws(*clicks.inputs()),
        moved.laws(*clicks.inputs()),
        strict=True,
    ):
        np.testing.assert_allclose(before, after, rtol=1e-9)


def test_every_query_weighs_the_same():
    clicks = HeldOutClicks(np.zeros(5), np.array([0, 0, 0, 2, 2]), *np.ones((6, 3)))
    np.testing.assert_allclose(clicks.weights(), [1 / 6, 1 / 6, 1 / 6, 1 / 4, 1 / 4])

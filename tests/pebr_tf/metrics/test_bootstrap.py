"""The bootstrap against normal theory, and the rates at which chance alone fires."""

import numpy as np
import pytest

from pebr_tf.metrics.significance import deviations, error_noise, interval, noise


@pytest.mark.parametrize("queries", [20, 400, 5_001])
def test_deviations_are_those_of_a_mean(queries):
    values = np.random.default_rng(1).normal(3, 2, size=(queries, 2))
    found = deviations(values)
    assert found.shape == (1_000, 2)
    expected = values.std(axis=0, ddof=1) / np.sqrt(queries)
    np.testing.assert_allclose(found.std(axis=0), expected, rtol=0.08)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=4 * expected.max() / np.sqrt(1_000))
    assert noise(values[:, 0]) == pytest.approx(1.645 * expected[0], rel=0.12)
    low, high = interval(values[:, 0] / 10)
    assert high - low == pytest.approx(0.392 * expected[0], rel=0.1)


def test_one_query_and_equal_queries():
    assert noise(np.array([0.4])) == 1
    assert error_noise(np.array([[0.4, 0.2]])) == 1
    assert noise(np.full(30, 0.4)) == pytest.approx(0)
    assert interval(np.array([0.1, 0.9]))[0] == 0


@pytest.mark.parametrize("queries", [30, 300])
def test_chance_alone_rarely_exceeds_its_noise(queries):
    """In about one of twenty samples; 150 samples have a standard error of .018."""
    generator = np.random.default_rng(3)
    fired = {"mean": 0, "error": 0}
    for _ in range(150):
        # The recall of two clicks at three cut-offs: values are few and go together.
        values = (generator.random((queries, 2, 1)) < [[[0.4, 0.6, 0.8]]]).mean(axis=1)
        fired["mean"] += values[:, 0].mean() < 0.4 - noise(values[:, 0])
        fired["error"] += np.abs(values.mean(axis=0) - [0.4, 0.6, 0.8]).mean() > error_noise(values)
    assert fired["mean"] / 150 <= 0.1
    assert fired["error"] / 150 <= 0.1
    assert min(fired.values()) > 0

"""Many experiments with a known lift: coverage, false alarms, and what CUPED is worth."""

import numpy as np
import pytest
from ab_logs import draw_users
from scipy import stats

from pebr_tf.ab import Metric, analyse

RUNS, USERS, LIFT = 250, 800, 0.1
PAST = ("clicks_before", "searches_before")
METRICS = (
    Metric("ratio", "clicks", "searches", past=PAST),
    Metric("ratio", "orders", "searches", past=PAST),
    Metric("mean", "clicks", past=PAST),
)


def simulated(seed, lift):
    """(metric, with CUPED) -> [RUNS, 5] difference, lift's ends, p and claimed reduction."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[str, bool], list[tuple[float, ...]]] = {}
    for _ in range(RUNS):
        for readout in analyse(draw_users(rng, [0.0, lift], USERS), METRICS).metrics:
            for adjusted, arms in ((False, readout.arms), (True, readout.cuped)):
                each = arms[1].comparison
                figures = (each.difference, each.lift_low, each.lift_high, each.p_value)
                row = (*figures, readout.variance_reduction[0])
                found.setdefault((readout.name, adjusted), []).append(row)
    return {key: np.array(values) for key, values in found.items()}


@pytest.fixture(scope="module")
def lifted():
    return simulated(11, LIFT)


@pytest.fixture(scope="module")
def alike():
    return simulated(12, 0.0)


def chance(share):
    """Shares of RUNS between which all but one in a thousand fall."""
    low, high = stats.binom.ppf([0.0005, 0.9995], RUNS, share) / RUNS
    return low, high


@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("metric", [metric.name for metric in METRICS])
def test_intervals_hold_the_lift_and_equal_arms_rarely_differ(lifted, alike, metric, adjusted):
    _, low, high, _, _ = lifted[metric, adjusted].T
    held = np.mean((low <= LIFT) & (high >= LIFT))
    least, most = chance(0.95)
    assert least <= held <= most
    p_values = alike[metric, adjusted][:, 3]
    least, most = chance(0.05)
    assert least <= np.mean(p_values < 0.05) <= most


@pytest.mark.parametrize("metric", [metric.name for metric in METRICS])
def test_cuped_moves_no_estimate_and_takes_off_what_it_claims(lifted, metric):
    plain, better = lifted[metric, False], lifted[metric, True]
    moved = better[:, 0] - plain[:, 0]
    assert abs(moved.mean()) < 3.3 * moved.std() / np.sqrt(RUNS)
    reduction = 1 - better[:, 0].var() / plain[:, 0].var()
    claimed = plain[:, 4].mean()
    assert reduction == pytest.approx(claimed, abs=0.12)
    assert claimed > (0.01 if "orders" in metric else 0.25)

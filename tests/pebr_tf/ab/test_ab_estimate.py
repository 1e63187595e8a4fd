"""Estimates, comparisons and the sample-ratio check against statsmodels, SciPy and pandas."""

import dataclasses
import math

import numpy as np
import pytest
import statsmodels.api as sm
from ab_logs import draw_log, draw_users, one_row_each
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportions_ztest

from pebr_tf.ab import Metric, Users, analyse, estimate, sample_ratio
from pebr_tf.ab.estimate import Estimate


def of_frame(frame, past=()):
    users = frame.groupby("user").agg("first")
    totals = frame.groupby("user")[["searches", "clicks", "orders"]].sum()
    names = tuple(sorted(frame["arm"].unique()))
    return Users(
        names=names,
        ids=list(users.index),
        arms=users["arm"].map(names.index).to_numpy(),
        rows=frame.groupby("user").size().to_numpy(),
        totals={name: totals[name].to_numpy(float) for name in totals},
        past={name: users[name].to_numpy(float) for name in past},
        crossing=0,
    )


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(
    ("users", "converted"),
    [((4_000, 4_100), (400, 471)), ((40, 900), (3, 850)), ((50, 60), (0, 9))],
)
def test_shares_are_those_of_statsmodels(users, converted, confidence):
    did = [np.repeat([1.0, 0.0], [k, n - k]) for k, n in zip(converted, users, strict=True)]
    log = one_row_each(np.repeat([0, 1], users), {"converted": 3 * np.concatenate(did)})
    analysis = analyse(log, [Metric("binary", "converted")], confidence=confidence)
    found = analysis.metrics[0].arms[1].comparison
    _, p_value = proportions_ztest(converted, users)
    assert found.p_value == pytest.approx(p_value, rel=1e-9)
    (k0, k1), (n0, n1), alpha = converted, users, 1 - confidence
    interval = confint_proportions_2indep(k1, n1, k0, n0, method="wald", alpha=alpha)
    assert (found.low, found.high) == pytest.approx(interval, rel=1e-9)
    if k0:
        counts = (k1, n1, k0, n0)
        interval = confint_proportions_2indep(*counts, method="log", compare="ratio", alpha=alpha)
        assert (found.lift_low + 1, found.lift_high + 1) == pytest.approx(interval, rel=1e-9)
        assert found.lift == pytest.approx(k1 * n0 / (n1 * k0) - 1)
    else:
        assert math.isnan(found.lift)
        assert math.isnan(found.lift_low)


def test_ratios_and_their_lifts_are_those_of_regressions_on_rows_with_clusters():
    """Variances are clustered by user; a regression divides by n, not n - 1.

    A ratio is the weighted mean of rows' rates. With searches as the exposure of clicks, the
    coefficient of a Poisson regression is the logarithm of the ratio's lift.
    """
    frame = draw_log(1, 1_500, ["control", "new"], [0, 0.1]).to_pandas()
    found = estimate_of(analyse(of_frame(frame), [Metric("ratio", "clicks", "searches")]))
    arms = sm.add_constant((frame["arm"] == "new").astype(float))
    clicks, searches = frame["clicks"], frame["searches"]
    by_user = {"groups": frame["user"], "use_correction": False}
    weighted = sm.WLS(clicks / searches, arms, weights=searches)
    fitted = weighted.fit(cov_type="cluster", cov_kwds=by_user)
    assert found.difference == pytest.approx(fitted.params.iloc[1], rel=1e-9)
    assert (found.high - found.difference) / 1.959964 == pytest.approx(fitted.bse.iloc[1], rel=2e-3)
    assert found.p_value == pytest.approx(fitted.pvalues.iloc[1], rel=2e-2)
    fitted = sm.GLM(clicks, arms, sm.families.Poisson(), exposure=searches).fit(
        cov_type="cluster", cov_kwds=by_user
    )
    assert math.log1p(found.lift) == pytest.approx(fitted.params.iloc[1], rel=1e-6)
    low, high = fitted.conf_int().iloc[1]
    width = math.log1p(found.lift_high) - math.log1p(found.lift_low)
    assert width == pytest.approx(high - low, rel=2e-3)
    assert math.log1p(found.lift_low) == pytest.approx(low, abs=2e-3 * width)


def test_a_mean_is_welch_s_test():
    users = draw_users(np.random.default_rng(4), [0, 0.2], 2_000)
    found = estimate_of(analyse(users, [Metric("mean", "clicks")]))
    control, treated = (users.totals["clicks"][users.arms == place] for place in range(2))
    expected = stats.ttest_ind(treated, control, equal_var=False)
    assert found.difference == pytest.approx(treated.mean() - control.mean())
    statistic = found.difference / (found.high - found.difference) * stats.norm.ppf(0.975)
    assert statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(statistic)), rel=1e-9)


def test_cuped_is_the_regression_on_arm_and_past():
    users = draw_users(np.random.default_rng(5), [0, 0.1, 0.0], 3_000)
    past = ("clicks_before", "searches_before")
    metric = Metric("ratio", "clicks", "searches", past=past)
    readout = analyse(users, [metric]).metrics[0]
    lines = []
    for place in range(3):
        chosen = users.arms == place
        clicks, searches = (users.totals[name][chosen] for name in ("clicks", "searches"))
        ratio = clicks.sum() / searches.sum()
        lines.append(ratio + (clicks - ratio * searches) / searches.mean())
    columns = [np.stack([users.past[name][users.arms == k] for name in past]).T for k in range(3)]
    arms = np.repeat(np.arange(3), list(map(len, lines)))
    dummies = np.stack([np.ones(len(arms)), arms == 1, arms == 2], axis=1)
    fitted = sm.OLS(
        np.concatenate(lines), np.concatenate([dummies, np.concatenate(columns)], axis=1)
    ).fit(cov_type="HC1")
    for place in (1, 2):
        found = readout.cuped[place].comparison
        assert found.difference == pytest.approx(fitted.params[place], rel=1e-8)
        margin = (found.high - found.difference) / stats.norm.ppf(0.975)
        assert margin == pytest.approx(fitted.bse[place], rel=1e-2)


def test_cuped_with_one_past_takes_off_the_squared_correlation():
    rng = np.random.default_rng(6)
    past, arms = rng.gamma(2.0, 3.0, 4_000), rng.integers(2, size=4_000)
    metric = Metric("mean", "clicks", past=("before",))
    totals = {"clicks": past * 0.7 + rng.gamma(2.0, 1.5, 4_000) + 0.2 * arms}
    users = one_row_each(arms, totals, {"before": past})
    readout = analyse(users, [metric]).metrics[0]
    within = [np.corrcoef(past[arms == k], totals["clicks"][arms == k])[0, 1] for k in range(2)]
    assert readout.variance_reduction[0] == pytest.approx(np.square(within).mean(), abs=2e-3)
    # The past twice, on another scale, says nothing new.
    twice = dataclasses.replace(users, past={"before": past, "again": 1e6 * past})
    again = analyse(twice, [dataclasses.replace(metric, past=("before", "again"))]).metrics[0]
    assert again.cuped[1].comparison.low == pytest.approx(readout.cuped[1].comparison.low)


@pytest.mark.parametrize(
    ("control", "arm", "lift", "low"),
    [
        (Estimate(0.0, 0.0), Estimate(0.1, 0.01), math.nan, math.nan),
        (Estimate(0.1, 0.01), Estimate(0.0, 0.0), -1.0, math.nan),
        (Estimate(0.5, 0.0), Estimate(0.5, 0.0), 0.0, 0.0),
        # As CUPED may leave it.
        (Estimate(1e-200, 1.0), Estimate(1e-200, 1.0), 0.0, math.nan),
        (Estimate(-0.1, 1.0), Estimate(0.1, 1.0), math.nan, math.nan),
    ],
)
def test_comparisons_at_the_edge(control, arm, lift, low):
    found = estimate.compare(control, arm, 0.95)
    assert (found.lift, found.lift_low) == pytest.approx((lift, low), nan_ok=True)
    assert math.isnan(found.p_value) == (control.variance + arm.variance == 0)
    assert found.difference == pytest.approx(arm.value - control.value)


def test_holm_is_that_of_statsmodels():
    p_values = np.array([0.04, 0.001, 0.03, 0.5, 0.013])
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(estimate.holm(p_values), expected)
    with_gap = estimate.holm(np.array([0.02, np.nan, 0.03]))
    np.testing.assert_allclose(with_gap, [0.04, np.nan, 0.04])


@pytest.mark.parametrize("users", [[5_000, 5_100], [900, 5_000, 4_800], [10_000, 9_100]])
def test_the_sample_ratio_check_is_scipy_s(users):
    weights = np.arange(1.0, len(users) + 1)[::-1]
    found = sample_ratio.check(np.array(users), weights)
    counts = weights / weights.sum() * sum(users)
    expected = stats.chisquare(users, counts)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-300)
    assert found.mismatch == (expected.pvalue < 0.001)


def test_several_arms_are_each_compared_with_control():
    users = draw_users(np.random.default_rng(7), [0, 0.2, 0.0], 3_000)
    metric = Metric("ratio", "clicks", "searches")
    analysis = analyse(users, [metric], control="c", expected="a=1,b=1,c=1")
    assert analysis.arms == ("c", "a", "b")
    assert analysis.users == tuple(int((users.arms == place).sum()) for place in (2, 0, 1))
    kept = users.arms != 0
    without = dataclasses.replace(
        users,
        names=("b", "c"),
        arms=users.arms[kept] - 1,
        rows=users.rows[kept],
        totals={name: values[kept] for name, values in users.totals.items()},
    )
    alone = analyse(without, [metric], control="c").metrics[0].arms[1]
    beside = analysis.metrics[0].arms[2]
    assert beside.comparison == alone.comparison
    assert beside.p_value_holm == pytest.approx(2 * alone.p_value_holm)


def estimate_of(analysis):
    return analysis.metrics[0].arms[1].comparison

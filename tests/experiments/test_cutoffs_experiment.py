"""Retrieved items by requested recall, against lists that are counted one by one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from experiments.cutoffs_measured import RECALLS, SHOWN, measure
from experiments.released import released


@pytest.fixture(scope="module", params=["pdf", "paper"])
def towers(request, towers):
    return replace(towers, config=towers.config.replace("loss.convention", request.param))


@pytest.fixture(scope="module")
def found(towers):
    return measure(towers)


@pytest.fixture(scope="module")
def cosines(towers):
    """[Q, 40] of the test queries, in the order of the corpus."""
    return towers.queries.vectors[towers.rows("test")] @ towers.items.T


def law(towers):
    """The query's own law of (1 + cosine) / 2, by SciPy."""
    tau = towers.queries.tau[towers.rows("test")].astype(float)
    more = 1 if towers.config.loss.convention == "pdf" else 0
    return stats.beta((1 / tau + more)[:, None], 1)


def test_literal_counts_are_those_beyond_the_law_s_quantile(towers, found, cosines):
    kept = law(towers).sf((1 + cosines.astype(float)) / 2)
    for recall, counts in zip(RECALLS, found["counts"]["cdf"], strict=True):
        # P(x >= cosine) <= recall, in float32.
        low, high = ((kept <= recall + sign * 1e-5).sum(axis=1) for sign in (-1, 1))
        assert ((low <= counts) & (counts <= high)).all()
    assert found["counts"]["cdf"].dtype == np.int32


def test_the_level_s_counts_are_items_above_the_calibrated_cut_off(towers, found, cosines):
    calibration = released(towers).calibration
    tau = towers.queries.tau[towers.rows("test")].astype(float)[:, None]
    logits = np.log((1 + cosines.astype(float)) / 2) / tau
    level_temperature = found["level_temperature"]
    top = logits.max(axis=1, keepdims=True)
    level = logits.max(axis=1)
    if level_temperature:
        level = top[:, 0] + level_temperature * np.log(
            np.exp((logits - top) / level_temperature).mean(axis=1)
        )
    for place, recall in enumerate(RECALLS):
        cutoffs = {
            "level": calibration.cutoff_for("recall", recall, found["strata"]),
            "level_one_map": np.full(len(level), calibration.recall.cutoff(recall)),
        }
        for policy, cutoff in cutoffs.items():
            scores = logits - level[:, None] - cutoff[:, None]
            low, high = (np.maximum((scores >= off).sum(axis=1), 1) for off in (1e-3, -1e-3))
            counts = found["counts"][policy][place]
            assert ((low <= counts) & (counts <= high)).all()
            assert (high - low).sum() <= 4


def test_literal_at_the_average_of_the_level_is_of_the_same_law(towers, found, cosines):
    level = found["counts"]["level"][RECALLS.index(SHOWN)]
    dropped = np.sort(law(towers).cdf((1 + cosines.astype(float)) / 2).ravel())
    # As many items as the level has in all are those whose law says most.
    total = found["equal_counts"].sum()
    assert level.sum() - 1 <= total <= level.sum()
    assert found["equal_dropped"] == pytest.approx(dropped[-total], rel=1e-3)

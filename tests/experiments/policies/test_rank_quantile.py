"""The boosted rank quantile against the quantiles of ranks that were drawn."""

import numpy as np
import pytest
from cutoff_worlds import clicks_by_breadth

from experiments.policies import rank_quantile


class Constant:
    """A tree that says the same of every query."""

    def __init__(self, value):
        self.value = value

    def predict(self, features):
        return np.full(len(features), self.value)


@pytest.fixture(scope="module")
def candidates():
    return clicks_by_breadth()


@pytest.fixture(scope="module")
def fitted(candidates, quick_fits):
    return rank_quantile.fit_rank_quantile(candidates)


def test_ranks_are_the_quantiles_of_the_clicks(candidates, fitted):
    ends = np.exp(fitted.log_ranks(candidates))
    assert (np.diff(ends, axis=1) >= 0).all()
    broad = candidates.queries.breadth > 100
    for share, end in zip(rank_quantile.SHARES, ends.T, strict=True):
        assert np.median(end[broad]) == pytest.approx(200 * share, abs=14)
        assert np.median(end[~broad]) == pytest.approx(20 * share, abs=2.5)


def test_shares_by_hand(candidates):
    """Quantiles at ranks 1, 1, 2, 2, 4, 8, 16, 8, 32: the 8 behind 16 counts as 16."""
    ends = (1, 1, 2, 2, 4, 8, 16, 8, 32)
    trees = rank_quantile.RankQuantilePolicy(trees=tuple(Constant(np.log(end)) for end in ends))
    scores = trees.scores(candidates)
    assert scores.dtype == np.float32
    expected = {1: 0.25, 2: 0.5, 3: 0.5 + 0.1 * np.log2(1.5), 4: 0.6, 8: 0.7, 16: 0.9, 32: 0.95}
    expected[300] = 0.95 + 0.05 * np.log(300 / 32) / np.log(301 / 32)
    for rank, share in expected.items():
        np.testing.assert_allclose(scores[:, rank - 1], -share, rtol=1e-5)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_features_are_what_a_server_knows(candidates):
    features = rank_quantile.features_of(candidates)
    row = 11
    logits = np.log((1 + candidates.cosines[row].astype(np.float64)) / 2) / candidates.tau[row]
    mass = np.exp(logits) / np.exp(logits).sum()
    cosines = candidates.cosines[row]
    expected = [
        np.log(candidates.tau[row]),
        np.log1p(candidates.queries.breadth[row]),
        cosines[0],
        cosines[0] - cosines[9],
        cosines[0] - cosines[99],
        cosines[0] - cosines[299],
        *(logits[0] - T * np.log(np.mean(np.exp(logits / T))) for T in (0.5, 1.0, 2.0)),
        -np.sum(mass * np.log(mass)),
    ]
    np.testing.assert_allclose(features[row], expected, rtol=1e-3, atol=1e-4)


def test_the_breadth_goes_with_its_query(candidates):
    chosen = candidates.queries.breadth > 100
    assert (candidates.part(chosen).queries.breadth == 500).all()

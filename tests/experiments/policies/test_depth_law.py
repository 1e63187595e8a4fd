"""The depth law against densities that clicks were drawn from, and scikit-learn's isotonic fit."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.special
from cutoff_worlds import clicks_by_breadth
from sklearn.isotonic import isotonic_regression

from experiments.policies.depth_law import Cells, clicks_of, edges_of, falling_means, fit_depth_law


@pytest.fixture(scope="module")
def candidates():
    return clicks_by_breadth()


@pytest.fixture(scope="module")
def law(candidates):
    return fit_depth_law(candidates)


@pytest.mark.slow
def test_shares_are_those_that_clicks_were_drawn_from(candidates, law):
    """A twentieth of the clicks in each of 20 ranks, or a two-hundredth in each of 200."""
    cells = Cells.of(candidates)
    shares = np.exp(law.log_shares(candidates))
    np.testing.assert_allclose((shares * cells.sizes).sum(axis=1), 1, rtol=1e-5)
    broad = candidates.queries.breadth > 100
    for chosen, last in ((broad, 200), (~broad, 20)):
        kept = (shares * cells.sizes)[chosen].mean(axis=0)
        for rank in (8, 16, 100, 180):
            inside = kept[cells.edges[1:] <= rank].sum()
            edge = cells.edges[cells.edges <= rank][-1]
            assert inside == pytest.approx(min(edge / last, 1), abs=0.05)


def test_slopes_are_the_isotonic_fit():
    generator = np.random.default_rng(1)
    values = generator.random((300, 9))
    sizes = generator.integers(0, 4, values.shape).astype(float)
    sizes[:, 0] = np.maximum(sizes[:, 0], 1)
    received = falling_means(values, sizes)
    assert (np.diff(received, axis=1) <= 0).all()
    for row, weights, slopes in zip(values, sizes, received, strict=True):
        there = weights > 0
        expected = isotonic_regression(row[there], sample_weight=weights[there], increasing=False)
        np.testing.assert_allclose(slopes[there], expected, rtol=1e-9)


def test_cells_by_hand(candidates):
    assert edges_of(5).tolist() == [0, 1, 2, 3, 4, 5]
    assert edges_of(12).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert edges_of(300)[-4:].tolist() == [233, 261, 292, 300]
    cells = Cells.of(candidates)
    assert (cells.sizes.sum(axis=1) == 300).all()
    np.testing.assert_allclose(cells.logits[7, -1], candidates.logits[7, 292:].mean(), rtol=1e-5)
    assert cells.middles[0] == 1
    assert cells.middles[-1] == np.mean([293, 300])


def test_what_lies_beyond_the_candidates_is_one_cell(candidates):
    shallow = replace(
        candidates,
        cosines=candidates.cosines[:, :100],
        relevant=replace(candidates.relevant, ranks=np.minimum(candidates.relevant.ranks, 100)),
    )
    cells = Cells.of(shallow)
    assert cells.edges[-2:].tolist() == [100, 300]
    assert (cells.sizes[:, -1] == 200).all()
    clicks = clicks_of(shallow, cells)
    np.testing.assert_allclose(clicks.sum(axis=1), 1, rtol=1e-6)
    beyond = np.bincount(candidates.relevant.rows[candidates.relevant.ranks >= 100], minlength=600)
    np.testing.assert_allclose(clicks[:, -1], beyond / candidates.totals, rtol=1e-6)


@pytest.mark.slow
def test_before_training_it_is_the_softmax(candidates, law):
    """The head starts at zero, so that the law starts as the exact density ratio, T = 1."""
    blank = replace(law, head=type(law.head)())
    blank.head(np.zeros((1, len(law.mean)), np.float32))
    cells = Cells.of(candidates)
    mass = cells.logits + np.log(cells.sizes)
    expected = cells.logits - scipy.special.logsumexp(mass, axis=1, keepdims=True)
    np.testing.assert_allclose(blank.log_shares(candidates), expected, atol=1e-4)

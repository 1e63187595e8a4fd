"""The choice of the level temperature by its rule."""

from dataclasses import replace

import numpy as np
import pytest
from unranked_lists import cutoff_at, evaluate, unranked

from pebr_tf.cutoff import level_temperature as module
from pebr_tf.cutoff.level_temperature import level_temperatures_for, tune_level_temperature
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.metrics.ranked import Ranks


def test_figures_are_those_of_the_general_lists(candidates):
    for level_temperature in (0.0, 0.5, 3.0):
        lists = LevelPolicy(level_temperature=level_temperature).lists(candidates)
        precision, recall = module._measure(lists, (3, 20)).mean(axis=-1)
        general = unranked(lists)
        for column, k in enumerate((3, 20)):
            figures = evaluate(general, cutoff_at(general, k))
            assert recall[column] == pytest.approx(figures.recall)
            assert precision[column] == pytest.approx(figures.precision)


def test_a_fixed_level_temperature_is_taken(candidates):
    assert tune_level_temperature(candidates, (5,), fixed=1.0).level_temperature == 1.0
    assert level_temperatures_for(0.35) == (0.35, 1.0)


def tuned(monkeypatch, figures, top_k, queries=400, noise=0.0):
    """Tunes with the mean recall and precision of each level temperature, and of top k."""
    generator = np.random.default_rng(0)
    shared = noise * generator.normal(size=queries)
    monkeypatch.setattr(module, "GRID", tuple(figures))
    monkeypatch.setattr(Policy, "lists", lambda policy, _: policy)

    def measure(policy, averages):
        recall, precision = top_k if policy.name == "top_k" else figures[policy.level_temperature]
        own = noise * generator.normal(size=queries)
        return np.stack([[precision + shared], [recall + shared + own - own.mean()]])

    monkeypatch.setattr(module, "_measure", measure)
    found = tune_level_temperature(range(queries), (150,))
    return found.level_temperature, found.beats_top_k


@pytest.mark.parametrize(
    ("figures", "chosen"),
    [
        # Recall .8 costs precision, .7 is the best that does not.
        ({0.0: (0.8, 0.1), 0.5: (0.7, 0.3), 1.0: (0.68, 0.4)}, (0.5, True)),
        # Within .002 the higher precision decides.
        ({0.0: (0.7, 0.3), 0.5: (0.6985, 0.5), 1.0: (0.69, 0.9)}, (0.5, True)),
        # More precision than top k does not make up for recall: top k is served.
        ({0.0: (0.5, 0.9), 0.5: (0.6, 0.9), 1.0: (0.64, 0.9)}, (1.0, False)),
        ({0.0: (0.7, 0.1), 0.5: (0.8, 0.1), 1.0: (0.9, 0.19)}, (1.0, False)),
    ],
)
def test_the_rule(monkeypatch, figures, chosen):
    assert tuned(monkeypatch, figures, (0.65, 0.2)) == chosen


def test_a_loss_within_its_standard_error_is_none(monkeypatch):
    """The standard error of a gain is .1 * sqrt(2) / sqrt(400) = .007."""
    for recall, beats in ((0.646, True), (0.63, False)):
        figures = {0.5: (recall, 0.3)}
        assert tuned(monkeypatch, figures, (0.65, 0.2), noise=0.1) == (0.5, beats)


def test_top_k_is_served_for_lists_without_an_order(candidates):
    """Where clicks fall anywhere, the level gains nothing; a fixed level temperature is kept."""
    generator = np.random.default_rng(1)
    ranks = generator.integers(0, candidates.depth, len(candidates.relevant.ranks))
    pairs = np.unique(candidates.relevant.rows * candidates.depth + ranks)
    rows, ranks = np.divmod(pairs, candidates.depth)
    totals = np.bincount(rows, minlength=len(candidates))
    noise = replace(candidates, relevant=Ranks(rows, ranks), totals=totals, seen=rows < 0)
    assert tune_level_temperature(noise, (5,), fixed=1.0).beats_top_k
    assert tune_level_temperature(candidates, (3, 20), served=0.8).beats_top_k

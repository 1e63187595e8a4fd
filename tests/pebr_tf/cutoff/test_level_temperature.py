"""The choice of the level temperature by its rule, and the level head that learns levels."""

import numpy as np
import pytest
from cutoff_worlds import make_world
from unranked_lists import cutoff_at, evaluate, unranked

from pebr_tf.cutoff import (
    fit_level_head,
    fitting,
    head_levels,
    level_fit,
    level_temperatures_for,
    tune_level_temperature,
)
from pebr_tf.cutoff import level_temperature as module
from pebr_tf.cutoff.candidates import levels_of
from pebr_tf.cutoff.policies import LevelPolicy, Policy


def test_figures_are_those_of_the_general_lists(candidates):
    found = tune_level_temperature(candidates, (3, 20))
    for place in (0, 5, len(found.level_temperatures) - 1):
        policy = LevelPolicy(level_temperature=found.level_temperatures[place])
        lists = unranked(policy.lists(candidates))
        for column, k in enumerate((3, 20)):
            figures = evaluate(lists, cutoff_at(lists, k))
            assert found.recall[place, column] == pytest.approx(figures.recall)
            assert found.precision[place, column] == pytest.approx(figures.precision)


def test_a_fixed_level_temperature_is_taken(candidates):
    assert tune_level_temperature(candidates, (5,), fixed=1.0).level_temperature == 1.0
    assert level_temperatures_for(0.35) == (0.35, 1.0)


@pytest.mark.parametrize(
    ("figures", "chosen"),
    [
        # Recall .8 costs precision, .7 is the best that does not.
        ({0.0: (0.8, 0.1), 0.5: (0.7, 0.3), 1.0: (0.6, 0.4)}, 0.5),
        # Within .002 the higher precision decides.
        ({0.0: (0.7, 0.3), 0.5: (0.6985, 0.5), 1.0: (0.69, 0.9)}, 0.5),
        # None keeps the precision.
        ({0.0: (0.5, 0.1), 0.5: (0.6, 0.1), 1.0: (0.7, 0.19)}, 1.0),
    ],
)
def test_the_rule(monkeypatch, figures, chosen):
    """top_k has precision .2."""
    values = iter([*figures.values(), (0.65, 0.2)])
    monkeypatch.setattr(module, "GRID", tuple(figures))
    monkeypatch.setattr(module, "_measure", lambda *_: tuple(np.array([v]) for v in next(values)))
    monkeypatch.setattr(Policy, "lists", lambda *_: None)
    assert tune_level_temperature(None, (150,)).level_temperature == chosen


@pytest.mark.slow
@pytest.mark.parametrize("family", ["beta", "exponential"])
def test_the_head_predicts_levels_of_queries_it_has_not_seen(family):
    corpus, queries, _ = make_world(queries=1_500)
    seen, others = queries.part(slice(0, 1_200)), queries.part(slice(1_200, None))
    found = fit_level_head(corpus, seen, family, 0.6, hidden=(64,))
    assert found.queries == 1_200
    wanted = others.tau * levels_of(corpus, others, family, 0.6)
    received = others.tau * head_levels(found.head, others)
    r_squared = 1 - np.var(received - wanted) / np.var(wanted)
    assert r_squared > 0.8
    assert found.r_squared == pytest.approx(r_squared, abs=0.15)


def test_a_large_corpus_takes_fewer_queries(world, monkeypatch):
    corpus, queries, _ = world
    monkeypatch.setattr(level_fit, "MOST_COSINES", 300 * 7)
    monkeypatch.setattr(fitting, "MOST_STEPS", 20)
    assert fit_level_head(corpus, queries, "beta", 1.0, hidden=(4,)).queries == 7

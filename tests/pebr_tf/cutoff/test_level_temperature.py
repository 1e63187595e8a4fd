"""The choice of the level temperature by its rule."""

import numpy as np
import pytest
from unranked_lists import cutoff_at, evaluate, unranked

from pebr_tf.cutoff import level_temperature as module
from pebr_tf.cutoff import level_temperatures_for, tune_level_temperature
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

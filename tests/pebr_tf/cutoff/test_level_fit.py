"""The level head learns measured levels."""

import numpy as np
import pytest
from cutoff_worlds import make_world

from pebr_tf.cutoff import fit_level_head, fitting, head_levels, level_fit
from pebr_tf.cutoff.candidates import levels_of


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

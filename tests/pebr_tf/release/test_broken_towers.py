"""The gates with few and many test queries: broken towers never pass, good ones do."""

from dataclasses import replace

import numpy as np
import pytest
from cutoff_worlds import make_world, unit
from evaluation_example import example

from pebr_tf.config import Cutoff, Gates
from pebr_tf.cutoff.calibration import calibrate
from pebr_tf.cutoff.candidates import ClickedPairs, collect_candidates
from pebr_tf.cutoff.evaluation import KnobEvaluation, evaluate_policies, own_gain
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.cutoff.policies.plain import TopKPolicy
from pebr_tf.release.gates import check_gates

AVERAGES, SETTINGS, CALIBRATE = (5, 20, 50), Cutoff(default_value=0.7), 400


@pytest.fixture(scope="module")
def world():
    return make_world(CALIBRATE + 3_000, 300, seed=7)


def shuffled(corpus, queries, generator):
    return generator.permutation(corpus), queries


def collapsed_items(corpus, queries, generator):
    return unit(corpus[:1] + 1e-5 * generator.normal(size=corpus.shape)), queries


def collapsed_queries(corpus, queries, generator):
    """Every query gets the same list, of items that are clicked often."""
    noise = 1e-5 * generator.normal(size=queries.vectors.shape)
    return corpus, replace(queries, vectors=unit(queries.vectors.mean(axis=0) + noise))


def equal_vectors(corpus, queries, generator):
    return np.repeat(corpus[:1], len(corpus), axis=0), queries


def yesterdays_index(corpus, queries, generator):
    """The same items by other towers: another basis of the space."""
    basis, _ = np.linalg.qr(generator.normal(size=(corpus.shape[1],) * 2))
    return unit(corpus @ basis), queries


def gates_of(world, queries, breaking=None):
    """The gates of towers that were calibrated in the state in which they are tested."""
    corpus, vectors, relevant = world
    used = relevant.rows < CALIBRATE + queries
    relevant = ClickedPairs(relevant.rows[used], relevant.items[used])
    vectors = vectors.part(np.arange(CALIBRATE + queries))
    if breaking is not None:
        corpus, vectors = breaking(corpus, vectors, np.random.default_rng(8))
    found = collect_candidates(corpus, vectors, relevant, "beta", (0.6, 1.0), len(corpus))
    rows = np.arange(len(found))
    policy = LevelPolicy(level_temperature=0.6)
    fitted = found.part(rows < CALIBRATE)
    calibration = calibrate(
        policy.lists(fitted), fitted.queries.strata, "level", "beta", 0.6, SETTINGS, AVERAGES
    )
    test = found.part(rows >= CALIBRATE)
    knobs = KnobEvaluation(calibration, test, SETTINGS)
    pairs = relevant.rows >= CALIBRATE
    clicked = ClickedPairs(relevant.rows[pairs] - CALIBRATE, relevant.items[pairs])
    evidence = knobs.evidence(20, own_gain(test, corpus, clicked, 5), np.ones((queries, 2)))
    evaluation = replace(
        example(),
        average_k=list(AVERAGES),
        policies=evaluate_policies([policy, TopKPolicy()], test, AVERAGES, "level"),
        calibration=knobs.calibration_result(),
        default_knob=knobs.default_knob(),
    )
    return check_gates(evaluation, evidence, Gates())


@pytest.mark.parametrize("queries", [30, 300, 3_000])
@pytest.mark.parametrize(
    "breaking", [shuffled, collapsed_items, collapsed_queries, equal_vectors, yesterdays_index]
)
def test_broken_towers_are_rejected(world, breaking, queries):
    gates = gates_of(world, queries, breaking)
    assert "min_query_gain" in [gate.name for gate in gates if gate.state == "failed"]


@pytest.mark.parametrize("queries", [30, 300, 3_000])
def test_good_towers_are_not_rejected(world, queries):
    gates = gates_of(world, queries)
    assert [gate.finding for gate in gates if gate.state == "failed"] == []
    assert all(gate.queries in (queries, *range(queries)) for gate in gates)


def test_good_towers_pass_with_any_thirty_queries(world):
    """Different samples of 30: one in twenty may fail a gate by chance, most gates rarely do."""
    corpus, vectors, relevant = world
    refused = 0
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(len(vectors))
        place = np.argsort(order)
        moved = ClickedPairs(place[relevant.rows], relevant.items)
        gates = gates_of((corpus, vectors.part(order), moved), 30)
        refused += any(gate.state == "failed" for gate in gates)
    assert refused <= 1

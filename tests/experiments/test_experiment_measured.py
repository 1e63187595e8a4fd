"""Measured figures against a direct count over all items of a small log."""

import dataclasses
import itertools

import numpy as np
import pytest

from experiments import ablation_cutoffs, measured
from pebr_tf.retrieval import ExactSearcher
from pebr_tf.retrieval import level as levels_of_search
from pebr_tf.retrieval.level import LevelCut, search_by_level

AVERAGES = (3, 5)


def clicked(towers, split):
    """Rows of a split's queries, and whether each item is relevant, [q, N]."""
    pairs = towers.corpus.pairs(split)
    rows = np.unique(pairs.rows)
    relevant = np.zeros((len(towers.queries), len(towers.items)), bool)
    relevant[pairs.rows, pairs.items] = True
    return rows, relevant[rows]


def scores_of(towers, rows, policy, level_temperature):
    """[q, N] by the definitions."""
    cosines = towers.queries.vectors[rows].astype(np.float64) @ towers.items.T.astype(np.float64)
    tau = towers.queries.tau[rows, None].astype(np.float64)
    logits = np.log((1 + cosines) / 2) / tau
    if policy == "level":
        if level_temperature == 0:
            return logits - logits.max(axis=1, keepdims=True)
        mean = np.exp(logits / level_temperature).mean(axis=1, keepdims=True)
        return logits - level_temperature * np.log(mean)
    if policy == "top_k":
        return -np.argsort(np.argsort(-cosines, axis=1), axis=1).astype(float)
    return {"score": cosines, "cdf": logits}[policy]


def counted(scores, relevant, average):
    """Macro precision and recall of the best `average` items per query, over all queries."""
    allowed = int(average * len(scores))
    cutoff = np.sort(scores, axis=None)[-allowed]
    retrieved = scores >= cutoff
    hits = (retrieved & relevant).sum(axis=1)
    precision = np.mean(hits / np.maximum(retrieved.sum(axis=1), 1))
    return precision, np.mean(hits / relevant.sum(axis=1))


@pytest.mark.parametrize("level_temperature", [0.0, 0.6, 1.0])
def test_policies_against_a_direct_count(towers, level_temperature):
    found = measured.measure(towers, level_temperature, AVERAGES)
    rows, relevant = clicked(towers, "test")
    assert found["level_temperature"] == level_temperature
    for policy, k in itertools.product(("level", "top_k", "score", "cdf"), AVERAGES):
        figures = found["at"][policy][str(k)]["overall"]
        wanted = counted(scores_of(towers, rows, policy, level_temperature), relevant, k)
        assert (figures["precision"], figures["recall"]) == pytest.approx(wanted, abs=1e-6)
        assert figures["average"] == pytest.approx(k, abs=0.05)
        assert found["at"]["oracle"][str(k)]["overall"]["recall"] >= figures["recall"]


@pytest.mark.parametrize("family", ["info_nce", "pointwise"])
def test_one_temperature_for_all_has_no_literal_pebr(towers, family):
    config = towers.config.replace_all({"loss.family": family, "loss.symmetric_weight": 0.0})
    found = measured.measure(dataclasses.replace(towers, config=config), 1.0, AVERAGES)
    assert tuple(found["at"]) == ("level", "top_k", "score", "oracle")


@pytest.mark.parametrize(
    ("level_temperature", "probe", "sample"), [(0.0, 3, 15), (0.6, 10, 15), (1.0, 3, 40)]
)
def test_probed_levels_are_those_of_the_retriever(
    towers, level_temperature, probe, sample, monkeypatch
):
    # So few items would be searched in one pass, without a probe.
    monkeypatch.setattr(levels_of_search, "ONE_PASS", 0)
    test = towers.candidates("test", (level_temperature,))
    levels = ablation_cutoffs.probed_levels(towers.items, test, level_temperature, probe, sample)
    background = ablation_cutoffs.sample_of(towers.items, sample)
    # So high that no list goes on beyond the probe.
    cut = LevelCut(100.0, level_temperature, "beta", probe)
    searcher = ExactSearcher(towers.items, background=background)
    served = search_by_level(searcher, test.queries.vectors, test.tau, cut)
    np.testing.assert_allclose(levels, served.levels, atol=2e-4)
    if sample == len(towers.items):
        np.testing.assert_allclose(levels, test.levels[level_temperature], atol=2e-4)


def test_cutoffs_of_the_same_towers(towers, monkeypatch):
    monkeypatch.setattr(ablation_cutoffs, "PROBES", (5, 1_000))
    monkeypatch.setattr(ablation_cutoffs, "SAMPLES", (10, 40))
    found = ablation_cutoffs.measure_cutoffs(towers, 0.6)
    level = measured.measure(towers, 0.6, AVERAGES)["at"]["level"]
    assert found["at"]["tuned"] == found["at"]["level_temperature 0.6"] == level
    rows, relevant = clicked(towers, "test")
    for level_temperature in (0.0, 1.5):
        figures = found["at"][f"level_temperature {level_temperature:g}"]["5"]["overall"]
        wanted = counted(scores_of(towers, rows, "level", level_temperature), relevant, 5)
        assert (figures["precision"], figures["recall"]) == pytest.approx(wanted, abs=1e-6)
    # All items are in the sample, or in the probe: nothing is guessed.
    for exact in ("probe 5, sample 40", "probe 1000, sample 10", "probe 1000, sample 40"):
        assert found["error"][exact] == pytest.approx(0, abs=1e-4)
        assert found["explained"][exact] == pytest.approx(1, abs=1e-6)
        assert found["at"][exact]["5"]["overall"]["recall"] == pytest.approx(
            level["5"]["overall"]["recall"], abs=0.02
        )
    assert found["error"]["probe 5, sample 10"] > 1e-3
    assert found["explained"]["sample"] <= 1
    assert set(found["error"]) == set(found["explained"]) < set(found["at"])

"""Measured figures against a direct count over all items of a small log."""

import dataclasses
import itertools

import numpy as np
import pytest
from small_logs import small_corpus

from experiments import ablation_cutoffs, measured
from experiments.study import Study
from pebr_tf.cutoff.candidates import QueryVectors
from pebr_tf.cutoff.level_temperature import GRID, TIE
from pebr_tf.retrieval import ExactSearcher
from pebr_tf.retrieval.level import LevelCut, search_by_level

AVERAGES = (3, 5)


@pytest.fixture(scope="module")
def towers():
    """Untrained towers whose vectors follow the words, so that recall is above chance."""
    data = small_corpus()
    generator = np.random.default_rng(1)
    words = sorted({word for text in [*data.queries, *data.titles] for word in text.split()})
    places = {word: generator.normal(size=8) for word in words}

    def embedded(texts):
        sums = np.array([sum(places[word] for word in text.split()) for text in texts])
        sums += 0.3 * generator.normal(size=sums.shape)
        return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)

    tau = (0.1 * np.exp(0.5 * generator.normal(size=len(data.queries)))).astype(np.float32)
    queries = QueryVectors(embedded(data.queries), tau, data.strata)
    return Study(data, data.config, embedded(data.titles), queries)


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


def test_the_level_temperature_is_the_best_on_the_calibrate_split(towers):
    rows, relevant = clicked(towers, "calibrate")
    pairs = np.array(
        [
            [counted(scores_of(towers, rows, "level", t), relevant, k) for k in AVERAGES]
            for t in GRID
        ]
    )
    base = [counted(scores_of(towers, rows, "top_k", 1.0), relevant, k) for k in AVERAGES]
    # Others may compete, too, if they are within a standard error of top k.
    competes = (pairs >= np.array(base)).all(axis=(1, 2))
    recall = pairs[..., 1].mean(axis=1)
    chosen = GRID.index(measured.tuned(towers))
    assert recall[chosen] >= np.where(competes, recall, -1).max() - TIE


@pytest.mark.parametrize("family", ["info_nce", "pointwise"])
def test_one_temperature_for_all_has_no_literal_pebr(towers, family):
    config = towers.config.replace_all({"loss.family": family, "loss.symmetric_weight": 0.0})
    found = measured.measure(dataclasses.replace(towers, config=config), 1.0, AVERAGES)
    assert tuple(found["at"]) == ("level", "top_k", "score", "oracle")


@pytest.mark.parametrize(
    ("level_temperature", "probe", "sample"), [(0.0, 3, 15), (0.6, 10, 15), (1.0, 3, 40)]
)
def test_probed_levels_are_those_of_the_retriever(towers, level_temperature, probe, sample):
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

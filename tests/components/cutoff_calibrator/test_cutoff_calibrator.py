"""CutoffCalibrator: the files after Do, compared with the library on the vectors themselves."""

import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from calibrated_cases import CONFIG, calibrate, write_clicks

from components.cutoff_calibrator import executor
from components.pairs import read_pairs, read_training_pairs
from pebr_tf.cutoff.calibration import Calibration, recall_map
from pebr_tf.cutoff.candidates import ClickedPairs, QueryVectors, collect_candidates
from pebr_tf.cutoff.level_temperature import level_temperatures_for, tune_level_temperature
from pebr_tf.cutoff.policies.level import LevelPolicy
from pebr_tf.errors import UserError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def output(calibrator_inputs, tmp_path_factory):
    """The artifact, made where a killed run has left files."""
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "cutoff.work" / "killed").mkdir(parents=True)
    real = executor.export_query_model

    def export(*arguments):
        real(*arguments)
        # A kill at this moment leaves an empty artifact.
        assert list((folder / "cutoff").iterdir()) == []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "export_query_model", export)
        return calibrate(folder, calibrator_inputs)


def calibrate_candidates(world):
    """The calibrate queries q1, q3, ... and their held-out clicks, without files."""
    rows = np.arange(1, 300, 2)
    position = {item: at for at, item in enumerate(world.ids)}
    pairs = sorted({(int(q[1:]) // 2, position[i]) for q, i, c in world.clicks["calibrate"] if c})
    pairs = ClickedPairs(*np.array(pairs).T)
    queries = QueryVectors(world.queries[rows], world.tau[rows], rows // 2 % 3)
    return collect_candidates(
        world.items, queries, pairs, "beta", level_temperatures_for(None), 300
    )


def test_the_calibration_is_that_of_the_library(world, output):
    assert {path.name for path in output.iterdir()} == {"cutoff.json", "query_model"}
    assert [path.name for path in output.parent.iterdir()] == ["cutoff"]
    found = Calibration.load(output)
    candidates = calibrate_candidates(world)
    assert (found.policy, found.family, found.queries) == ("level", "beta", 150)
    assert (found.folds, found.level_temperature) == (0, 0.6)
    lists = LevelPolicy(level_temperature=found.level_temperature).lists(candidates)
    expected = recall_map(lists, 1, 300)
    np.testing.assert_allclose(found.recall.knob_values, expected.knob_values)
    np.testing.assert_allclose(found.recall.cutoffs, expected.cutoffs, atol=1e-4)
    assert set(found.strata) == {"head", "torso", "tail"}


def test_top_k_is_served_where_the_level_is_worse(world, calibrator_inputs, tmp_path):
    """The clicks of this world do not depend on the temperatures of its queries."""
    level_tuning = tune_level_temperature(calibrate_candidates(world), (5, 20, 50), served=0.7)
    assert not level_tuning.beats_top_k
    automatic = CONFIG.replace("cutoff.level_temperature", None)
    output = calibrate(tmp_path, calibrator_inputs, automatic)
    found = Calibration.load(output)
    assert (found.policy, found.level_temperature) == ("top_k", level_tuning.level_temperature)
    assert found.default_items == pytest.approx(found.items_per_query("recall", 0.7))


def test_the_query_model_has_the_level_the_law_and_the_default_knob(world, output):
    found = Calibration.load(output)
    model = tf.saved_model.load(str(output / "query_model"))
    answer = model.signatures["serving_default"](query=tf.constant(["q0", "q4"]))
    np.testing.assert_allclose(answer["embedding"], world.queries[[0, 4]], atol=1e-6)
    cosines = world.queries[[0, 4]] @ world.items.T
    logits = np.log((1 + cosines) / 2) / world.tau[[0, 4], None]
    temperature = found.level_temperature
    levels = temperature * np.log(np.mean(np.exp(logits / temperature), axis=1))
    np.testing.assert_allclose(answer["level"], levels, atol=1e-3)
    z = np.exp(world.tau[[0, 4]] * (found.signature.cutoff(0.7) + answer["level"].numpy()))
    np.testing.assert_allclose(answer["threshold"], np.clip(2 * z - 1, -1, 1), atol=1e-5)


def test_the_signatures_keep_what_they_are_asked_to(world, output):
    """Over the queries that they were calibrated on."""
    model = tf.saved_model.load(str(output / "query_model"))
    pairs = sorted({(int(q[1:]), i) for q, i, c in world.clicks["calibrate"] if c})
    rows, items = np.array([q for q, _ in pairs]), np.array([i for _, i in pairs])
    queries, rows = np.unique(rows, return_inverse=True)
    texts = tf.constant([f"q{query}" for query in queries])
    position = {item: at for at, item in enumerate(world.ids)}
    columns = [position[item] for item in items]
    cosines = (world.queries[queries] @ world.items.T)[rows, columns]
    for signature, name in (("query_at", "recall"), ("share_at", "share")):
        for value in (0.5, 0.8):
            inputs = {name: tf.fill([len(queries)], value)}
            answer = model.signatures[signature](query=texts, **inputs)
            kept = np.bincount(rows, cosines >= answer["threshold"].numpy()[rows])
            assert np.mean(kept / np.bincount(rows)) == pytest.approx(value, abs=0.1)


def test_pairs_are_read_once_and_only_with_clicks(world, calibrator_inputs, monkeypatch):
    # Several tables, so that equal pairs meet again.
    monkeypatch.setattr("components.pairs.BATCH", 64)
    monkeypatch.setattr("components.pairs.ROWS_AT_ONCE", 100)
    examples = calibrator_inputs["examples"][0]
    clicked = read_pairs(examples, "test")
    received = text_pairs(clicked)
    assert received == {(q, i) for q, i, c in world.clicks["test"] if c}
    assert (len(clicked.rows), clicked.clicks) == (600, 1200)
    known, total = read_training_pairs(examples, ["q4", "q0"])
    assert total == 300 * 8 * 2
    assert text_pairs(known) == {(q, i) for q, i, _ in world.clicks["train"] if q in ("q0", "q4")}
    few = clicked.limited(10)
    assert len(few.queries) == 10
    assert text_pairs(few) == {pair for pair in received if pair[0] in few.queries}
    assert read_pairs(examples, "nothing").queries == []
    places = clicked.pairs(world.ids)
    assert world.ids[places.items].tolist() == texts(clicked.item_ids)
    assert clicked.pairs(world.ids[:3]).items.min() == -1


def text_pairs(clicked):
    named = zip(clicked.rows, texts(clicked.item_ids), strict=True)
    return {(clicked.queries[row], item) for row, item in named}


def texts(column):
    return [value.decode() for value in column.to_pylist()]


def test_memory_does_not_depend_on_the_longest_query(tmp_path):
    clicks = {"train": [], "test": [(f"q{i}", f"item-{i:03}", 1) for i in range(300)]}
    clicks["test"].append(("long " * 20_000, "item-000", 1))
    examples = write_clicks(tmp_path / "long", clicks)
    read_pairs(examples, "test")
    tracemalloc.start()
    assert len(read_pairs(examples, "test").limited(20).queries) == 20
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # As fixed-width strings, the queries took 120 MB.
    assert peak < 10e6


def test_few_queries_are_those_of_both_splits_and_too_few_leave_nothing_behind(
    world, calibrator_inputs, tmp_path
):
    clicks = {**world.clicks, "calibrate": world.clicks["calibrate"][:90]}
    given = {**calibrator_inputs, "examples": [write_clicks(tmp_path / "few", clicks)]}
    both = tmp_path / "both"
    both.mkdir()
    found = Calibration.load(calibrate(both, given))
    assert (found.queries, found.folds) == (160, 5)
    clicks = {**clicks, "calibrate": clicks["calibrate"][:80], "test": []}
    given = {**calibrator_inputs, "examples": [write_clicks(tmp_path / "none", clicks)]}
    error = r"calibrate and test must have at least 10 queries .*held out\. Received: 9\."
    with pytest.raises(UserError, match=error):
        calibrate(tmp_path, given)
    assert list((tmp_path / "cutoff").iterdir()) == []
    assert not (tmp_path / "cutoff.work").exists()

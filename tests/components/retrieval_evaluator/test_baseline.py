"""The last blessed model on the clicks of this run, against a loop; models that do not compare."""

import numpy as np
import pytest
from artifact_files import artifact, write_examples
from calibrated_cases import describe, save_towers, unit
from evaluator_runs import EASY, evaluate, held_out
from tfx.types.standard_artifacts import Model

from components.retrieval_evaluator.baseline import ComparedClicks, measure_baseline
from pebr_tf.release.evaluation import default_result, named_policy

pytestmark = pytest.mark.slow

SPLIT = EASY.split.to_mapping()


@pytest.fixture(scope="module")
def given(world, inputs, tmp_path_factory):
    order = np.random.default_rng(1).permutation(len(world.ids))
    rows = [{"item_id": str(world.ids[row]), "title": f"n{row}"} for row in order]
    catalogue = write_examples(tmp_path_factory.mktemp("catalogue"), items=rows)
    return {**inputs, "catalogue": [catalogue]}


def earlier(folder, world, noise):
    generator = np.random.default_rng(2)
    items = unit(world.items + noise * generator.normal(size=world.items.shape))
    queries = unit(world.queries + noise * generator.normal(size=world.queries.shape))
    model = save_towers(
        folder / "earlier", queries, world.tau, items, steps=5, config={"split": SPLIT}
    )
    return model, queries, items


@pytest.fixture(scope="module")
def same_model(world, tmp_path_factory):
    return earlier(tmp_path_factory.mktemp("same"), world, 0.0)[0]


def recall_at_20(world, queries, items):
    found = [
        len(set(held_out(world, row)) & set(np.argsort(-(items @ queries[row]))[:20])) / 4
        for row in range(0, 300, 2)
    ]
    return np.mean(found)


def test_an_earlier_model_that_was_worse(world, given, tmp_path):
    model, queries, items = earlier(tmp_path, world, 0.3)
    content, _ = evaluate(tmp_path, {**given, "baseline": [model]}, EASY)
    top_k, level = content.baseline.policies
    assert (top_k.name, level.name, level.default) == ("top_k", "level", True)
    expected = recall_at_20(world, queries, items)
    assert expected < recall_at_20(world, world.queries, world.items) - 0.02
    assert top_k.at[20]["overall"].recall == pytest.approx(expected)
    assert content.baseline.model == model.uri
    (gate,) = (each for each in content.gates if each.name == "min_baseline_recall_lift")
    ours = default_result(content.policies)
    before, now = (each.at[20]["overall"].recall for each in (level, ours))
    assert gate.received == pytest.approx(now / before - 1)
    assert gate.state == "passed"
    assert content.blessed
    assert "Last blessed model" in (tmp_path / "evaluation" / "report.html").read_text("utf-8")


def test_the_same_model_measures_the_same_and_may_lose(world, given, same_model, tmp_path):
    config = EASY.replace_all(
        {"evaluation.gates.min_baseline_recall_lift": 0.01, "evaluation.max_queries": 60}
    )
    content, _ = evaluate(tmp_path, {**given, "baseline": [same_model]}, config)
    for each in content.baseline.policies:
        ours = named_policy(content.policies, each.name)
        now, before = (policy.at[50]["overall"].recall for policy in (ours, each))
        assert now == pytest.approx(before, abs=1e-6)
    assert not content.blessed
    assert (tmp_path / "blessing" / "NOT_BLESSED").read_text() == (
        "Not blessed: gain in recall over the last blessed model at k = 20 is 0.000 for 60 "
        "queries, below the required 0.01 (min_baseline_recall_lift).\n"
    )


def measured(model, catalogue, ids):
    """The baseline on no clicks: it must stop before it looks at them."""
    clicks = ComparedClicks(None, None, None, ids)
    return measure_baseline(model, catalogue, clicks, EASY.cutoff, (20,), SPLIT)


def test_no_model_or_one_of_another_split_is_not_a_baseline(world, given, tmp_path, caplog):
    (catalogue,) = given["catalogue"]
    assert measured(artifact(Model, tmp_path), catalogue, world.ids) is None
    assert "No baseline: there is no earlier model that this version reads." in caplog.text
    describe(tmp_path / "Format-Serving", config={"split": {**SPLIT, "seed": 1}})
    assert measured(artifact(Model, tmp_path), catalogue, world.ids) is None
    assert "No baseline: its split must be " in caplog.text


def test_a_catalogue_without_its_columns(world, same_model, tmp_path):
    bare = write_examples(tmp_path, items=[{}])
    assert measured(same_model, bare, world.ids) is None

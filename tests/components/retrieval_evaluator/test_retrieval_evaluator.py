"""RetrievalEvaluator: evaluation.json against figures taken by hand, the report, the blessing."""

import shutil

import numpy as np
import pytest
from artifact_files import artifact
from calibrated_cases import calibrate
from evaluator_runs import EASY, evaluate, held_out
from tfx.components.util.model_utils import is_model_blessed

from components.artifacts import CutoffModel
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.errors import UserError
from pebr_tf.metrics.strata import STRATA
from pebr_tf.release.evaluation import DataSummary, IndexResult, named_policy

pytestmark = pytest.mark.slow

POLICIES = ["level", "level_sample", "top_k", "score", "gap", "cdf", "nucleus", "adapter", "oracle"]


@pytest.fixture(scope="module")
def evaluated(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    return folder, *evaluate(folder, inputs, EASY)


def test_the_evaluation_has_what_it_should(world, evaluated):
    folder, content, blessing = evaluated
    assert [policy.name for policy in content.policies] == list(POLICIES)
    assert [policy.name for policy in content.unseen] == list(POLICIES)
    assert all(policy.curve for policy in content.policies)
    assert content.data == DataSummary(
        items=400,
        train_clicks=4800,
        calibrate_queries=150,
        test_queries=150,
        test_clicks=1200,
        strata={"head": 50, "torso": 50, "tail": 50},
    )
    assert content.model.loss == "beta_nce"
    assert content.previous is None
    assert content.baseline is None
    assert len(content.examples) == 12
    assert content.index == IndexResult("exact", 400, 1.0, 1.0, 150)
    assert [each.batch for each in content.latency] == [1, 32]
    for each in content.latency:
        assert 0 < each.p50_ms <= each.p99_ms
        assert each.queries_per_second > 0
    assert content.blessed
    assert all(gate.state == "passed" for gate in content.gates)
    assert [path.name for path in (folder / "blessing").iterdir()] == ["BLESSED"]
    assert is_model_blessed(blessing)
    assert (folder / "evaluation" / "report.html").stat().st_size > 1_000
    assert {path.name for path in (folder / "evaluation").iterdir()} == {
        "evaluation.json",
        "report.html",
    }


def test_top_k_by_a_loop(world, evaluated):
    at = named_policy(evaluated[1].policies, "top_k").at[20]
    recalls = {}
    for row in range(0, 300, 2):
        best = np.argsort(-(world.items @ world.queries[row]))[:20]
        recalls[row] = len(set(held_out(world, row)) & set(best)) / 4
    assert at["overall"].recall == pytest.approx(np.mean([*recalls.values()]))
    for number, stratum in enumerate(STRATA):
        rows = [row for row in recalls if row // 2 % 3 == number]
        assert at[stratum].recall == pytest.approx(np.mean([recalls[row] for row in rows]))


def test_unseen_top_k_by_a_loop(world, evaluated):
    policy = named_policy(evaluated[1].unseen, "top_k")
    place = {item: at for at, item in enumerate(world.ids)}
    recalls = []
    for row in range(0, 300, 2):
        scores = world.items @ world.queries[row]
        scores[[place[i] for q, i, _ in world.clicks["train"] if q == f"q{row}"]] = -9
        recalls.append(len(set(held_out(world, row)) & set(np.argsort(-scores)[:20])) / 4)
    assert policy.at[20]["overall"].recall == pytest.approx(np.mean(recalls))


def test_a_gate_that_fails_is_named_with_both_numbers(inputs, evaluated, tmp_path):
    """The run goes on, with levels from a sample; the last blessed evaluation stands beside it."""
    shutil.copytree(evaluated[0] / "evaluation", tmp_path / "releases" / "41")
    config = EASY.replace_all(
        {
            "cutoff.level_source": "sample",
            "evaluation.gates.min_recall_lift": 5,
            "evaluation.max_queries": 60,
        }
    )
    content, blessing = evaluate(tmp_path, inputs, config)
    assert not content.blessed
    assert content.data.test_queries == 60
    assert [policy.name for policy in content.policies if policy.default] == ["level_sample"]
    assert content.index.recall_macro == 1.0
    (failed,) = (gate for gate in content.gates if gate.state == "failed")
    assert (failed.name, failed.required) == ("min_recall_lift", ">= 5.00")
    assert not is_model_blessed(blessing)
    text = (tmp_path / "blessing" / "NOT_BLESSED").read_text()
    assert text == (
        f"Not blessed: gain in recall over top_k at k = 20 is {failed.received_text} for 60 "
        "queries, below the required 5.00 (min_recall_lift).\n"
    )
    assert content.previous.version == 41
    assert content.previous == evaluated[1].as_previous(41)


def test_a_release_that_serves_shares_is_evaluated_by_them(inputs, tmp_path):
    config = EASY.replace_all({"cutoff.policy": "share", "evaluation.max_queries": 30})
    given = {name: each for name, each in inputs.items() if name != "cutoff"}
    cutoff = artifact(CutoffModel, calibrate(tmp_path, given, config))
    content, _ = evaluate(tmp_path, {**given, "cutoff": [cutoff]}, config)
    assert [policy.name for policy in content.policies] == ["share", *POLICIES]
    assert [policy.name for policy in content.policies if policy.default] == ["share"]
    assert (tmp_path / "evaluation/report.html").exists()


def test_few_queries_are_evaluated_by_cross_fitting(inputs, tmp_path):
    config = EASY.replace_all({"cutoff.min_calibration_queries": 200, "cutoff.default_value": None})
    given = {name: each for name, each in inputs.items() if name != "cutoff"}
    cutoff = calibrate(tmp_path, given, config)
    content, _ = evaluate(tmp_path, {**given, "cutoff": [artifact(CutoffModel, cutoff)]}, config)
    found = Calibration.load(cutoff)
    assert (content.data.test_queries, content.calibration.queries["overall"]) == (300, 300)
    assert "adapter" not in [policy.name for policy in content.policies]
    knob = content.default_knob
    assert knob.value == found.default_value
    assert knob.interval[0] < knob.groups["overall"].recall < knob.interval[1]
    # The default is what the largest average reaches.
    assert found.default_items == pytest.approx(50, rel=0.05)
    assert knob.groups["overall"].average == pytest.approx(50, rel=0.1)
    assert "calibrated on 300 queries" in found.notes("recall", found.default_value, 4_000)[0]


def test_no_test_clicks(inputs, tmp_path):
    examples = artifact(type(inputs["examples"][0]), inputs["examples"][0].uri, ["train"])
    with pytest.raises(UserError, match=r"the split test must have clicks\. Received: none\."):
        evaluate(tmp_path, {**inputs, "examples": [examples]}, EASY)
    assert not (tmp_path / "evaluation").exists()

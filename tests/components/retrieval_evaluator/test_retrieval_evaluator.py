"""RetrievalEvaluator: evaluation.json against figures taken by hand, the report, the blessing."""

import json
import shutil

import numpy as np
import pytest
from calibrated_cases import CONFIG, World, artifact, calibrate, channels, write_inputs
from tfx.components.util.model_utils import is_model_blessed
from tfx.types.standard_artifacts import ModelBlessing

from components.artifacts import CutoffModel, RetrievalEvaluation
from components.retrieval_evaluator import RetrievalEvaluator, searching
from components.retrieval_evaluator.executor import Executor
from pebr_tf.errors import UserError
from pebr_tf.metrics import STRATA

KEYS = {
    "model", "data", "average_k", "policies", "curves", "unseen", "calibration", "default_knob",
    "budget", "counts", "examples", "index", "latency", "gates", "blessed", "previous",
    "baseline",
}  # fmt: skip
# So few queries say little: gates that any model passes.
EASY = CONFIG.replace_all(
    {
        "evaluation.gates.min_precision_lift": -1,
        "evaluation.gates.min_recall_lift": -1,
        "evaluation.gates.max_calibration_error": 1,
        "evaluation.gates.max_stratum_calibration_error": 1,
    }
)

POLICIES = ["level", "level_head", "top_k", "score", "gap", "cdf", "nucleus", "adapter", "oracle"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(searching, "CALLS", 5)


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def inputs(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    given = write_inputs(folder, world)
    return {**given, "cutoff": [artifact(CutoffModel, calibrate(folder, given))]}


def evaluate(folder, given, config):
    """Runs Do as TFX would; the evaluation as it is on disk, and the blessing."""
    config = config.replace("pipeline.releases", str(folder / "releases"))
    component = RetrievalEvaluator(**channels(given), config=config, source="abc")
    outputs = {
        "evaluation": [artifact(RetrievalEvaluation, folder / "evaluation")],
        "blessing": [artifact(ModelBlessing, folder / "blessing")],
    }
    Executor().Do(given, outputs, component.exec_properties)
    content = json.loads((folder / "evaluation" / "evaluation.json").read_text(encoding="utf-8"))
    return content, outputs["blessing"][0]


@pytest.fixture(scope="module")
def evaluated(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    return folder, *evaluate(folder, inputs, EASY)


def held_out(world, row):
    place = {item: at for at, item in enumerate(world.ids)}
    clicks = {(q, i) for q, i, c in world.clicks["test"] if c and q == f"q{row}"}
    return [place[item] for _, item in clicks]


def test_the_evaluation_has_what_it_should(world, evaluated):
    folder, content, _ = evaluated
    assert set(content) == KEYS
    assert [policy["name"] for policy in content["policies"]] == POLICIES
    assert [policy["name"] for policy in content["unseen"]] == POLICIES
    assert set(content["curves"]) == set(POLICIES)
    assert content["data"] == {
        "items": 400,
        "test_queries": 150,
        "test_clicks": 1200,
        "calibrate_queries": 150,
        "train_clicks": 4800,
        "span": None,
        "strata": {"head": 50, "torso": 50, "tail": 50},
    }
    assert content["model"]["loss"] == "beta_nce"
    assert content["previous"] is None
    assert content["baseline"] is None
    assert len(content["examples"]) == 12
    assert (folder / "evaluation" / "report.html").stat().st_size > 1_000
    assert {path.name for path in (folder / "evaluation").iterdir()} == {
        "evaluation.json",
        "report.html",
    }


@pytest.mark.parametrize("group", ["overall", *STRATA])
def test_top_k_by_a_loop(world, evaluated, group):
    content = evaluated[1]
    (policy,) = (policy for policy in content["policies"] if policy["name"] == "top_k")
    rows = [r for r in range(0, 300, 2) if group in ("overall", STRATA[r // 2 % 3])]
    recalls = []
    for row in rows:
        best = np.argsort(-(world.items @ world.queries[row]))[:20]
        recalls.append(len(set(held_out(world, row)) & set(best)) / 4)
    assert policy["at"]["20"][group]["recall"] == pytest.approx(np.mean(recalls))


def test_unseen_top_k_by_a_loop(world, evaluated):
    (policy,) = (policy for policy in evaluated[1]["unseen"] if policy["name"] == "top_k")
    place = {item: at for at, item in enumerate(world.ids)}
    recalls = []
    for row in range(0, 300, 2):
        scores = world.items @ world.queries[row]
        scores[[place[i] for q, i, _ in world.clicks["train"] if q == f"q{row}"]] = -9
        recalls.append(len(set(held_out(world, row)) & set(np.argsort(-scores)[:20])) / 4)
    assert policy["at"]["20"]["overall"]["recall"] == pytest.approx(np.mean(recalls))


def test_the_index_and_its_time(evaluated):
    content = evaluated[1]
    assert content["index"] == {
        "kind": "exact",
        "items": 400,
        "recall_macro": 1.0,
        "recall_micro": 1.0,
        "queries": 150,
    }
    times = content["latency"]
    assert times["batch"] == [1, 32]
    for column in ("p50_ms", "p99_ms", "queries_per_second"):
        assert len(times[column]) == 2
        assert min(times[column]) > 0


def test_a_model_that_passes_is_blessed(evaluated):
    folder, content, blessing = evaluated
    assert content["blessed"] is True
    assert all(gate["passed"] for gate in content["gates"])
    assert [path.name for path in (folder / "blessing").iterdir()] == ["BLESSED"]
    assert is_model_blessed(blessing)


def test_a_gate_that_fails_is_named_with_both_numbers(inputs, evaluated, tmp_path):
    """And the run goes on; the last blessed evaluation stands beside it."""
    shutil.copytree(evaluated[0] / "evaluation", tmp_path / "releases" / "41")
    config = EASY.replace_all({"evaluation.gates.min_recall_lift": 5, "evaluation.max_queries": 60})
    content, blessing = evaluate(tmp_path, inputs, config)
    assert content["blessed"] is False
    assert content["data"]["test_queries"] == 60
    (failed,) = (gate for gate in content["gates"] if not gate["passed"])
    assert (failed["name"], failed["required"]) == ("min_recall_lift", ">= 5.00")
    assert not is_model_blessed(blessing)
    text = (tmp_path / "blessing" / "NOT_BLESSED").read_text()
    assert text == (
        "recall over top_k at k = 20 (min_recall_lift) must be >= 5.00. "
        f"Received: {failed['received']:.4f}.\n"
    )
    assert content["previous"]["version"] == 41
    assert content["previous"]["policies"] == evaluated[1]["policies"]
    assert not content["previous"].get("previous")


def test_the_head_alone_can_serve(inputs, tmp_path):
    config = EASY.replace("cutoff.level_source", "head")
    content, _ = evaluate(tmp_path, inputs, config)
    assert [p["name"] for p in content["policies"] if p["default"]] == ["level_head"]
    assert content["index"]["recall_macro"] == 1.0


def test_no_test_clicks(inputs, tmp_path):
    examples = artifact(type(inputs["examples"][0]), inputs["examples"][0].uri, ["train"])
    with pytest.raises(UserError, match=r"the split test must have clicks\. Received: none\."):
        evaluate(tmp_path, {**inputs, "examples": [examples]}, EASY)
    assert not (tmp_path / "evaluation").exists()

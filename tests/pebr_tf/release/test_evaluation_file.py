"""evaluation.json: a round trip, and what is rejected."""

import json
import math
from dataclasses import replace

import pytest
from evaluation_example import example, rejected

from pebr_tf.release.evaluation import BaselineResult, ModelEvaluation


def test_a_round_trip(tmp_path):
    evaluation = replace(
        example(), baseline=BaselineResult("model", 7, 0.5, example().policies[:2]), unseen=[]
    )
    evaluation.save(tmp_path)
    assert ModelEvaluation.load(tmp_path) == evaluation
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation.json"]
    content = json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))
    assert content["blessed"] is True
    assert "手机壳 透明" in (tmp_path / "evaluation.json").read_text(encoding="utf-8")
    rejected().save(tmp_path)
    assert not ModelEvaluation.load(tmp_path).blessed


def test_what_is_not_a_number_is_not_written(tmp_path):
    evaluation = example()
    evaluation.calibration.error["head"] = math.nan
    with pytest.raises(ValueError, match="not JSON compliant"):
        evaluation.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content.pop("index"), "index: Field required"),
        (
            lambda content: content["policies"][0]["at"]["150"]["overall"].pop("recall"),
            "policies.0.at.150.overall.recall: Field required",
        ),
        (lambda content: content["gates"][0].update(sign="<"), "gates.0.sign: Input should be"),
        (lambda content: content["data"].update(items="many"), "data.items: Input should be"),
    ],
)
def test_what_does_not_fit_is_rejected_in_one_sentence(tmp_path, change, reason, rejection):
    example().save(tmp_path)
    path = tmp_path / "evaluation.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content))
    sentence = rejection(ModelEvaluation.load, tmp_path)
    start = "evaluation.json must be an evaluation of this version. Received: "
    assert sentence.startswith(start + reason)
    assert "\n" not in sentence


def test_a_file_that_is_missing_or_cut(tmp_path, rejection):
    sentence = rejection(ModelEvaluation.load, tmp_path)
    assert sentence.endswith(" must be readable. Received: No such file or directory.")
    (tmp_path / "evaluation.json").write_text('{"model":')
    sentence = rejection(ModelEvaluation.load, tmp_path)
    assert "Received: Invalid JSON: EOF while parsing a value" in sentence

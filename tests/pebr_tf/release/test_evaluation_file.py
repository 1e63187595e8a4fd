"""evaluation.json: a round trip, and what is rejected."""

import json
import math
from dataclasses import replace

import pytest
from evaluation_example import example, rejected

from pebr_tf.errors import UserError
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


def test_the_middle_average():
    assert example().middle_k == 150
    assert replace(example(), average_k=[5, 50]).middle_k == 50


def test_what_is_not_a_number_is_not_written(tmp_path):
    evaluation = example()
    evaluation.calibration.error["head"] = math.nan
    with pytest.raises(ValueError, match="not JSON compliant"):
        evaluation.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def drop(path):
    def change(content):
        *parents, last = path
        for name in parents:
            content = content[name]
        del content[last]

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (drop(["index"]), "index: Field required"),
        (
            drop(["policies", 0, "at", "150", "overall", "recall"]),
            "policies.0.at.150.overall.recall: Field required",
        ),
        (lambda content: content["gates"][0].update(sign="<"), "gates.0.sign: Input should be"),
        (lambda content: content["data"].update(items="many"), "data.items: Input should be"),
    ],
)
def test_what_does_not_fit_is_rejected_in_one_sentence(tmp_path, change, reason):
    example().save(tmp_path)
    path = tmp_path / "evaluation.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as raised:
        ModelEvaluation.load(tmp_path)
    assert str(raised.value).startswith(
        f"evaluation.json must be an evaluation of this version. Received: {reason}"
    )
    assert "\n" not in str(raised.value)


def test_a_file_that_is_missing_or_cut(tmp_path):
    with pytest.raises(
        UserError, match=r"must be readable\. Received: No such file or directory\."
    ):
        ModelEvaluation.load(tmp_path)
    (tmp_path / "evaluation.json").write_text('{"model":')
    with pytest.raises(UserError, match=r"Received: Invalid JSON: EOF while parsing a value"):
        ModelEvaluation.load(tmp_path)

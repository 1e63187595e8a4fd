"""Index-only runs: a model of the same settings is used, any other is rejected with a reason."""

import json

import numpy as np
import pytest
from index_builder_cases import build, inputs, item

from components.index_builder.fit import require_fit, wanted_of
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.release.towers import TowersDescription

pytestmark = pytest.mark.slow


def write_description(model):
    """Writes the description of a model that was trained with the default settings."""
    TowersDescription(
        family="beta",
        dimension=8,
        loss="beta_nce",
        steps=1,
        # The model states what it was trained with, the configuration of the run says auto.
        config=wanted_of(Config().replace("towers.dimension", 128)),
    ).save(model)


def require(model, **changes):
    wanted = wanted_of(Config().replace_all(changes))
    require_fit(str(model), json.loads(json.dumps(wanted, sort_keys=True)))


def test_a_model_of_the_same_settings_is_used(tmp_path):
    """One item without queries is enough."""
    given = inputs(tmp_path, [item("a", "red shoes")])
    write_description(tmp_path / "model" / "Format-Serving")
    config = Config().replace_all(
        {"training.steps": 7, "cutoff.limit": 600, "data.reject_limit": 0}
    )
    uri = build(tmp_path, given, config, fit=True)
    assert np.load(uri / "index" / "ids.npy").tolist() == ["a"]
    assert not np.load(uri / "moments.npz")["covariance"].any()
    with pytest.raises(UserError, match=r"^the last blessed model must fit the configuration of "):
        build(tmp_path, given, config.replace("towers.dimension", 64), fit=True)


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"towers.dimension": 64}, "towers.dimension 128 in the model, 64 in the configuration"),
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
def test_a_model_of_other_settings_is_rejected(tmp_path, changes, received):
    write_description(tmp_path)
    with pytest.raises(UserError) as caught:
        require(tmp_path, **changes)
    assert str(caught.value) == (
        "the last blessed model must fit the configuration of an index-only run. "
        f"Received: {received}."
    )


def test_a_model_without_a_description_is_rejected(tmp_path):
    with pytest.raises(UserError, match=r"must describe itself\. Received: no .*towers\.json\.$"):
        require(tmp_path)

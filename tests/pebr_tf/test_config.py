"""The configuration as a value: defaults, round trips, overrides."""

import dataclasses
import pickle
import subprocess
import sys
from typing import Any, Literal, get_args, get_origin

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, assume, given, settings

from pebr_tf.config import Config, ConfigError, Gates, Machine, Training
from pebr_tf.config.runs import ACCELERATORS
from pebr_tf.config.section import leaves
from pebr_tf.config.setting import split_null
from pebr_tf.errors import UserError

LEAVES = dict(leaves(Config))
# Starting points that no single change reaches, because their settings need each other.
PRESETS: list[dict[str, Any]] = [
    {},
    {"split.by": "time", "data.timestamp_column": "clicked_at"},
    {"loss.family": "pointwise", "loss.symmetric_weight": 0, "loss.learn_temperature": True},
    {"towers.kind": "transformer", "towers.token_dimension": 96, "towers.transformer_heads": 12},
    {"towers.kind": "bert", "towers.backbone": "encoders/minilm"},
    {"strata.head": 0.6, "strata.torso": 0.3, "strata.tail": 0.1},
    {"serving.backend": "tf_serving", "serving.tf_serving.address": "[::1]:8500"},
    {f"serving.tls.{key}": f"{key}.pem" for key in ("certificate", "key", "client_authority")}
    | {"serving.tls.mutual": True},
]


def values(key):
    rule, hint = key.rule, key.hint
    kind, nullable = split_null(hint)
    if nullable:
        return st.none() | values(dataclasses.replace(key, hint=kind))
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is tuple:
        entry = values(dataclasses.replace(key, hint=get_args(hint)[0]))
        lists = st.lists(entry, min_size=int(rule.filled), max_size=4, unique=True)
        return lists.map(sorted) if rule.increasing else lists
    if hint is bool:
        return st.booleans()
    if hint is str:
        texts = st.from_regex(rule.pattern, fullmatch=True) if rule.pattern else st.text()
        return texts.filter(str.strip)
    bounds: Any = rule.bounds
    if hint is int:
        return st.integers(bounds.low, bounds.high)
    return st.floats(
        bounds.low, bounds.high, exclude_min=not bounds.has_low, exclude_max=not bounds.has_high
    )


@st.composite
def configs(draw):
    paths = draw(st.lists(st.sampled_from(sorted(LEAVES)), max_size=6, unique=True))
    changes = dict(draw(st.sampled_from(PRESETS)))
    changes.update({path: draw(values(LEAVES[path])) for path in paths})
    try:
        return Config().replace_all(changes)
    except ConfigError:
        # Each value is valid by itself, so what is rejected is a contradiction.
        assume(False)
        raise


# A noisy machine draws slowly; that is no finding about the code.
HEALTH = [HealthCheck.filter_too_much, HealthCheck.too_slow]


@settings(max_examples=20, deadline=None, suppress_health_check=HEALTH)
@given(configs(), st.booleans())
def test_any_valid_config_survives_a_round_trip(config, comments):
    again = Config.from_yaml(config.to_yaml(comments))
    assert again == config
    assert again.fingerprint() == config.fingerprint()
    assert (config.fingerprint() == Config().fingerprint()) == (config == Config())
    assert Config.from_mapping(config.to_mapping()) == config
    assert Config().replace_all(config.changes()) == config


def test_a_file_survives_a_round_trip(tmp_path):
    config = Config().replace_all({"training.batch_size": 512, "data.query_column": "查询 #1: 'q'"})
    path = tmp_path / "new" / "pebr.yaml"
    config.dump(path)
    assert Config.load(path) == Config.load(str(path)) == config


def test_a_section_that_is_all_comments_has_its_defaults():
    assert Config.from_yaml("training:\n  # batch_size: 2\nevaluation:\n  gates:\n") == Config()


def test_integers_and_lists_become_numbers_and_tuples():
    config = Config.from_mapping(
        {"towers": {"tau_max": 1, "hidden_layers": [64, 64]}, "loss": {"gamma": -0.0}}
    )
    assert repr(config.towers.tau_max) == "1.0"
    assert config.towers.hidden_layers == (64, 64)
    # -0.0 == 0.0, so their fingerprints must be equal as well.
    assert repr(config.loss.gamma) == "0.0"
    assert Training(learning_rate=1) == Training(learning_rate=1.0)


def test_replace_changes_one_setting_of_a_copy():
    config = Config()
    changed = config.replace("evaluation.gates.max_empty_rate", 0.5)
    assert changed.evaluation.gates == Gates(max_empty_rate=0.5)
    assert changed.changes() == {"evaluation.gates.max_empty_rate": 0.5}
    assert config == Config()
    assert config.replace("training", Training(seed=7)).training.seed == 7
    assert config.replace("training", {"seed": 7}).training == Training(seed=7)


def test_errors_survive_pickling():
    error = ConfigError("training.seed", "be an integer", "null", "pebr.yaml")
    assert isinstance(error, UserError)
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error) == "pebr.yaml: training.seed must be an integer. Received: null."


def test_another_process_has_the_same_fingerprint_and_imports_nothing_heavy():
    program = (
        "import sys; from pebr_tf.config import Config; print(Config().fingerprint()); "
        "print({'tensorflow', 'numpy', 'tfx', 'apache_beam'} & set(sys.modules))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert printed.splitlines() == [Config().fingerprint(), "set()"]
    assert len(Config().fingerprint()) == 64


@pytest.mark.slow
def test_the_accelerators_are_those_of_the_client_library():
    from google.cloud.aiplatform_v1.types import AcceleratorType

    known = {kind.name for kind in AcceleratorType}
    assert set(ACCELERATORS) == {name for name in known if name.startswith("NVIDIA_")}


def test_a_text_describes_a_machine():
    assert Machine.of("16 cpu, 64 GB") == Machine(16, 64)
    assert Machine.of("16 cpu, 64 GB, 2 NVIDIA_L4") == Machine(16, 64, "NVIDIA_L4", 2)
    for text in Config().cloud.resources.to_mapping().values():
        assert Machine.of(text) == Machine(4, 16)


def test_fingerprints_ignore_the_order_of_keys_and_sections_have_their_own():
    sections = reversed(Config().to_mapping().items())
    backwards = {name: dict(reversed(each.items())) for name, each in sections}
    assert Config.from_mapping(backwards).fingerprint() == Config().fingerprint()
    changed = Config().replace("training.seed", 9000)
    assert changed.serving.fingerprint() == Config().serving.fingerprint()
    assert changed.training.fingerprint() != Config().training.fingerprint()

"""Each mistake in a configuration gives one exact sentence."""

import math
from typing import Any

import pytest
import yaml
from text_tables import cases

from pebr_tf.config import Config, ConfigError, Cutoff, Training
from pebr_tf.config.runs import ACCELERATORS

REJECTED_VALUES: list[tuple[str, Any, str]] = [
    ("training.batch_size", 0, "an integer from 2 to 1048576. Received: 0."),
    ("training.batch_size", True, "an integer from 2 to 1048576. Received: true."),
    ("training.batch_size", "512", "an integer from 2 to 1048576. Received: '512'."),
    ("training.warm_start", "yes", "true or false. Received: 'yes'."),
    ("training.learning_rate", 0, "null or a number above 0 and at most 10. Received: 0."),
    ("training.optimizer", "sgd", "one of adam, adagrad. Received: 'sgd'."),
    ("split.by", 3, "one of pair, time, query. Received: 3."),
    ("towers.dropout", math.nan, "a number at least 0 and below 1. Received: nan."),
    ("loss.gamma", math.inf, "a number from 0 to 1. Received: inf."),
    (
        "loss.gamma",
        10**400,
        "a number from 0 to 1. Received: 1" + "0" * 17 + "..." + "0" * 19 + ".",
    ),
    ("data.query_column", "", "a non-empty string. Received: ''."),
    ("data.clicks_column", 7, "null or a non-empty string. Received: 7."),
    ("data.payload_columns", "title", "a list of strings, no repeats. Received: 'title'."),
    ("data.payload_columns", ["a", "a"], "a list of strings, no repeats. Received: ['a', 'a']."),
    ("towers.hidden_layers", 256, "a list of integers from 1 to 65536. Received: 256."),
    (
        "evaluation.average_k",
        (150, 50),
        "a list of integers from 1 to 1000000, at least one, increasing. Received: [150, 50].",
    ),
    (
        "loss.coverage_recall",
        None,
        "a list of numbers above 0 and below 1, at least one, increasing. Received: null.",
    ),
    ("serving.tf_serving.address", "localhost", "null or host:port. Received: 'localhost'."),
    (
        "cloud.image",
        "europe-docker.pkg.dev/shop/pebr",
        "null or an image with a tag or a digest, such as pebr:1. "
        "Received: 'europe-docker.pkg.dev/shop/pebr'.",
    ),
    (
        "cloud.resources.trainer",
        "16 cpu",
        "a text such as '4 cpu, 16 GB' or '16 cpu, 64 GB, 1 NVIDIA_L4'. Received: '16 cpu'.",
    ),
    ("evaluation.average_k[1]", [50, 0], "an integer from 1 to 1000000. Received: 0."),
    ("data.payload_columns[0]", [3], "a non-empty string. Received: 3."),
    ("training.seed.low", 3, "a known key (training.seed has none). Received: 3."),
    ("training", 3, "a mapping of settings. Received: 3."),
    ("evaluation.gates", "strict", "a mapping of settings. Received: 'strict'."),
]


@pytest.mark.parametrize(("path", "value", "sentence"), REJECTED_VALUES)
def test_rejected_values(path, value, sentence, rejection):
    assert rejection(Config().replace, path.split("[")[0], value) == f"{path} must be {sentence}"


# A file, and below it the sentence that rejects it.
UNKNOWN_KEYS = """\
training: {batchsize: 512}
    training.batchsize must be a known key (did you mean batch_size?). Received: 512.
trainig: {batch_size: 512}
    trainig must be a known key (did you mean training?). Received: {'batch_size': 512}.
batch_size: 512
    batch_size must be a known key (did you mean training.batch_size?). Received: 512.
evaluation: {max_empty_rate: 0.1}
    evaluation.max_empty_rate must be a known key (did you mean gates.max_empty_rate?).
    Received: 0.1.
strata: {middle: 0.3}
    strata.middle must be a known key (head, torso, tail, min_queries). Received: 0.3.
strata: {3: 0.3}
    strata.3 must be a known key (head, torso, tail, min_queries). Received: 0.3.
"""


@pytest.mark.parametrize(("line", "sentence"), cases(UNKNOWN_KEYS))
def test_unknown_keys(line, sentence, rejection):
    assert rejection(Config.from_mapping, yaml.safe_load(line)) == sentence


# Settings, and below them the sentence that rejects them.
CONTRADICTIONS = """\
split.calibrate: 0.6, split.test: 0.5
    split.calibrate plus test must be below 1, to leave a share for train. Received: 0.6 + 0.5.
split.calibrate: 0.7, split.test: 0.3
    split.calibrate plus test must be below 1, to leave a share for train. Received: 0.7 + 0.3.
strata.head: 0.6
    strata.head plus torso plus tail must be 1. Received: 0.6 + 0.3 + 0.2.
features.item_text: []
    features.item_text must name a column when the item has no other feature. Received: [].
features.word_ngrams: [], features.character_ngrams: []
    features.word_ngrams must hold a size when character_ngrams is empty. Received: [].
towers.tau_min: 0.05
    towers.tau_initial must be above tau_min (0.05) and below tau_max (1.0). Received: 0.05.
towers.tau_max: 0.05
    towers.tau_initial must be above tau_min (0.002) and below tau_max (0.05). Received: 0.05.
towers.kind: transformer, towers.token_dimension: 130
    towers.token_dimension must be a multiple of transformer_heads (4). Received: 130.
towers.kind: bert
    towers.backbone must name a folder when kind is bert. Received: null.
loss.family: pointwise
    loss.symmetric_weight must be 0 when family is pointwise. Received: 1.0.
loss.family: mle, loss.symmetric_weight: 0, loss.log_q: true
    loss.log_q must be false when family is mle. Received: true.
loss.symmetric_weight: 0, loss.gamma: 0.5
    loss.gamma must be 0 when symmetric_weight is 0. Received: 0.5.
loss.family: exp_nce, loss.delta_beta: 0.5
    loss.delta_beta must be 0 when family is exp_nce. Received: 0.5.
loss.family: info_nce, loss.coverage_weight: 0.5
    loss.coverage_weight must be 0 when family is info_nce. Received: 0.5.
loss.learn_temperature: true
    loss.learn_temperature must be false when family is beta_nce. Received: true.
cutoff.floor: 11000
    cutoff.floor must be at most limit (10000). Received: 11000.
cutoff.default_value: 90
    cutoff.default_value must be a number above 0 and below 1 when default_knob is recall.
    Received: 90.0.
cutoff.default_knob: budget
    cutoff.default_value must be a number from 1 to 10000 when default_knob is budget. Received:
    null.
cutoff.default_knob: top_k, cutoff.default_value: 10.5, cutoff.floor: 3
    cutoff.default_value must be a whole number from 3 to 10000 when default_knob is top_k.
    Received: 10.5.
cutoff.default_knob: top_k, cutoff.default_value: 0, cutoff.floor: 0
    cutoff.default_value must be a whole number from 1 to 10000 when default_knob is top_k.
    Received: 0.0.
cutoff.default_knob: score, cutoff.default_value: 2
    cutoff.default_value must be a number from -1 to 1 when default_knob is score. Received: 2.0.
index.check_recall: 0.995
    index.check_recall must be at most recall_target (0.99). Received: 0.995.
cloud.training_job.workers: 4
    training.strategy must be multi_worker when cloud.training_job.workers is 4. Received:
    'one_device'.
serving.grpc_port: 8601
    serving.http_port must differ from grpc_port. Received: 8601.
serving.backend: tf_serving
    serving.tf_serving.address must be host:port when backend is tf_serving. Received: null.
serving.batching.queue_limit: 32
    serving.batching.max_size must be at most queue_limit (32). Received: 64.
serving.batching.queue_limit: 128
    serving.limits.queries_per_call must be at most batching.queue_limit (128). Received: 256.
serving.tls.certificate: server.pem
    serving.tls.key must name a file when certificate does. Received: null.
serving.tls.key: server.key
    serving.tls.certificate must name a file when key does. Received: null.
serving.tls.mutual: true
    serving.tls.certificate must name a file when mutual is true. Received: null.
serving.tls.mutual: true, serving.tls.certificate: server.pem, serving.tls.key: server.key
    serving.tls.client_authority must name a file when mutual is true. Received: null.
serving.tls.client_authority: clients.pem
    serving.tls.mutual must be true when client_authority is set. Received: false.
split.by: time, data.timestamp_column: null
    data.timestamp_column must name a column when split.by is time. Received: null.
cutoff.limit: 100, evaluation.average_k: [50, 150]
    evaluation.average_k must stay within cutoff.limit (100). Received: [50, 150].
evaluation.gates.min_index_recall: 0.995
    evaluation.gates.min_index_recall must be at most index.recall_target (0.99). Received: 0.995.
"""


@pytest.mark.parametrize(("line", "sentence"), cases(CONTRADICTIONS))
def test_contradictions(line, sentence, rejection):
    assert rejection(Config().replace_all, yaml.safe_load(f"{{{line}}}")) == sentence


def test_an_unknown_accelerator_is_rejected(rejection):
    machine = "4 cpu, 16 GB, 1 NVIDIA_T4"
    assert rejection(Config().replace, "cloud.resources.trainer", machine) == (
        f"cloud.resources.trainer must name one of the accelerators {', '.join(ACCELERATORS)}, "
        f"or a resource of Kubernetes, such as nvidia.com/gpu. Received: '{machine}'."
    )


# Looks like a contradiction, and is none.
@pytest.mark.parametrize(
    "changes",
    [
        {"cutoff.probe_size": 20_000},  # the probe measures the level; the limit ends the list
        # The report compares all policies.
        {"cutoff.policy": "top_k", "cutoff.level_temperature": 0.6},
        {"strata.head": 1 / 3, "strata.torso": 1 / 3, "strata.tail": 1 / 3},
        {"serving.grpc_port": 0, "serving.http_port": 0},
        {"towers.token_dimension": 130},  # heads matter to the transformer alone
        {"features.item_text": [], "features.item_id": True},
        {"features.item_text": [], "features.item_numbers": ["price"]},
        {
            "features": {"query_kind": "id", "item_text": [], "item_id": True}
            | {"word_ngrams": [], "character_ngrams": []}
        },
        {"data.timestamp_column": None},
        {"cutoff.floor": 0, "cutoff.default_knob": "top_k", "cutoff.default_value": 1},
    ],
)
def test_what_is_no_contradiction(changes):
    assert Config().replace_all(changes) != Config()


def test_the_first_mistake_in_file_order_is_reported():
    mapping = {"training": {"seed": -1, "steps": 0}, "data": {"reject_limit": 2}}
    with pytest.raises(ConfigError, match=r"^training\.seed must be"):
        Config.from_mapping(mapping)
    with pytest.raises(ConfigError, match=r"^data\.reject_limit must be"):
        Config.from_mapping(dict(reversed(mapping.items())))
    with pytest.raises(ConfigError, match=r"^training\.steps must be"):
        Config.from_mapping({"training": {"steps": 0, "seed": -1}})


A_MAPPING = "must be a mapping of settings."
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Training(batch_size=1),
            "batch_size must be an integer from 2 to 1048576. Received: 1.",
        ),
        (lambda: Cutoff(floor=3, limit=2), "floor must be at most limit (2). Received: 3."),
        (lambda: Config.from_mapping(3), f"The configuration {A_MAPPING} Received: 3."),
        (lambda: Config().replace("split", ENDLESS), f"split {A_MAPPING} Received: [[[...]]]."),
        (
            lambda: Config().replace("loss.log_q", "x" * 10_000),
            f"loss.log_q must be true or false. Received: '{'x' * 27}...{'x' * 28}'.",
        ),
    ],
)
def test_however_a_section_is_made(make, sentence, rejection):
    assert rejection(make) == sentence

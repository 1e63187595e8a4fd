"""TF_CONFIG, the strategy of a config, and what is said when a worker is lost."""

import json
from types import SimpleNamespace

import pytest
import tensorflow as tf

from pebr_tf.config import Training
from pebr_tf.errors import UserError
from pebr_tf.training.workers import (
    all_staying,
    is_chief,
    numbers_of_all,
    strategy_of,
    worker_count,
)

TWO = {"worker": ["a:1", "b:1"]}
MIRRORED = Training(strategy="mirrored", batch_size=16)
MULTI_WORKER = Training(strategy="multi_worker", batch_size=16)


def tf_config(cluster, job="worker", index=0):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (None, 1),
        (tf_config({"worker": ["a:1"]}), 1),
        (tf_config({"chief": ["a:1"]}, "chief"), 1),
        (tf_config(TWO, index=1), 2),
        # As on Vertex AI, where the first pool is the chief.
        (tf_config({"chief": ["a:1"], **TWO}, "chief"), 3),
        (tf_config({"chief": ["a:1"], **TWO, "evaluator": ["c:1"]}), 3),
    ],
)
def test_workers_are_counted(text, count):
    assert worker_count(text) == count


def test_a_tf_config_that_is_no_json_is_rejected(rejection):
    for text in ("", "{worker"):
        sentence = rejection(worker_count, text)
        assert sentence.startswith('TF_CONFIG must be JSON such as {"cluster": ')
        assert sentence.endswith(f". Received: '{text}'.")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        json.dumps({"cluster": TWO}),
        json.dumps({"task": {"type": "worker", "index": 0}}),
        tf_config(TWO, index=2),
        tf_config(TWO, "chief"),
        tf_config({**TWO, "evaluator": ["c:1"]}, "evaluator"),
        tf_config({"worker": 2}),
    ],
)
def test_a_tf_config_without_this_task_in_its_cluster_is_rejected(monkeypatch, text, rejection):
    monkeypatch.setenv("TF_CONFIG", text)
    sentence = rejection(strategy_of, MULTI_WORKER)
    start = "TF_CONFIG must have a cluster, and in it this task, a chief or a worker: "
    assert sentence.startswith(start)
    assert sentence.endswith(f" Received: {text!r}.")


def test_the_config_names_the_strategy(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert isinstance(strategy_of(MIRRORED), tf.distribute.MirroredStrategy)
    assert strategy_of(Training(batch_size=16)) is tf.distribute.get_strategy()


@pytest.mark.parametrize("cluster", [None, {"worker": ["127.0.0.1:1"]}])
def test_one_worker_alone_trains_on_its_own_devices(monkeypatch, cluster):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if cluster:
        monkeypatch.setenv("TF_CONFIG", tf_config(cluster))
    strategy = strategy_of(MULTI_WORKER)
    assert strategy.num_replicas_in_sync == 1
    assert is_chief(strategy)
    assert numbers_of_all(strategy, 7) == [7]


def test_a_process_that_has_computed_cannot_be_one_of_several_workers(monkeypatch, rejection):
    tf.constant(1) + 1
    monkeypatch.setenv("TF_CONFIG", tf_config(TWO))
    start = "each of several workers must be a process that runs the Trainer alone. "
    assert rejection(strategy_of, MULTI_WORKER).startswith(start)


def test_a_batch_that_devices_cannot_share_says_so(monkeypatch, rejection):
    three = SimpleNamespace(num_replicas_in_sync=3)
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", lambda: three)
    assert strategy_of(Training(strategy="mirrored", batch_size=18)) is three
    assert rejection(strategy_of, MIRRORED) == (
        "training.batch_size must be a multiple of the number of devices (3). Received: 16."
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Socket closed", "Socket closed"),
        ("Task /job:worker/task:1 heartbeat timeout. Check its logs.", "Task .* heartbeat timeout"),
    ],
)
def test_a_lost_worker_is_told_of_and_when(said, told):
    message = f"Graph execution error:\n\nCollective ops is aborted by: {said}\nRestart."
    with (
        pytest.raises(
            UserError,
            match=rf"^every worker must stay .* Received: a worker lost after step 3 \({told}\)\.$",
        ) as caught,
        all_staying(lambda: "after step 3"),
    ):
        raise tf.errors.UnavailableError(None, None, message)
    assert isinstance(caught.value.__cause__, tf.errors.UnavailableError)


def test_other_errors_are_left_alone():
    with (
        pytest.raises(tf.errors.UnavailableError, match="storage"),
        all_staying(lambda: "after step 3"),
    ):
        raise tf.errors.UnavailableError(None, None, "storage")

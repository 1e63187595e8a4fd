"""Keras 2 and quiet, however the code is entered; each case in a process of its own."""

import os
import subprocess
import sys

import pytest

KERAS = "import tensorflow as tf; print(tf.keras.layers.Layer.__module__.split('.')[0])"


def run(code, **environment):
    ours = ("TF_USE_LEGACY_KERAS", "TF_CPP_MIN_LOG_LEVEL", "PEBR_VERBOSE")
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**clean, **environment}
    )


@pytest.mark.slow
def test_keras_2_is_there_and_quiet():
    result = run(f"import pebr_tf; {KERAS}; import tensorflow_recommenders")
    assert (result.stdout, result.stderr) == ("tf_keras\n", "")


@pytest.mark.slow
def test_after_tensorflow_there_is_keras_2_or_it_is_said_to_be_too_late():
    """In a fork `tf.keras` is used before, which fails there."""
    late = "tensorflow.keras.layers.Layer; import pebr_tf"
    result = run(
        f"import os, tensorflow\nif not os.fork(): {late}\n"
        f"import pebr_tf; {KERAS}; print(os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    assert result.stdout == "tf_keras\n1\n", result.stderr
    assert (
        "ImportError: pebr_tf requires Keras 2: import it before tf.keras is first used, or set "
        "TF_USE_LEGACY_KERAS=1. Received: tf.keras from keras." in result.stderr
    )


@pytest.mark.parametrize("entry", ["pebr_tf.cli.main", "components", "pipeline", "serving"])
def test_every_entry_prepares_before_tensorflow(entry):
    code = f"import {entry}, os, sys; print('tensorflow' in sys.modules, 'pebr_tf' in sys.modules)"
    result = run(f"{code}; print(os.environ['TF_USE_LEGACY_KERAS'])")
    assert result.stdout == "False True\n1\n", result.stderr


def test_verbose_restores_logs_and_what_the_user_has_set_wins():
    code = (
        "import logging, os, pebr_tf; print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'), "
        "logging.getLevelName(logging.getLogger('tensorflow').level))"
    )
    assert run(code).stdout == "3 ERROR\n"
    assert run(code, PEBR_VERBOSE="1").stdout == "None INFO\n"
    assert run(code, TF_CPP_MIN_LOG_LEVEL="1").stdout == "1 ERROR\n"


def test_verbose_gives_back_only_what_we_took(tmp_path):
    """Through the real entry point, before any framework is imported."""
    code = (
        "import os; from pebr_tf.cli.main import main\n"
        f"try: main(['--verbose', 'config', 'init', '{tmp_path}/a.yaml'])\n"
        "finally: print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'), os.environ.get('GRPC_VERBOSITY'))"
    )
    assert run(code, GRPC_VERBOSITY="INFO").stdout.splitlines()[1] == "None INFO"

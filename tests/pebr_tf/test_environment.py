"""Keras 2 and quiet, however the code is entered; each case in a process of its own."""

import os
import subprocess
import sys

import pytest

KERAS = "import tensorflow as tf; print(tf.keras.layers.Layer.__module__.split('.')[0])"


def run(code, **environment):
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("TF_USE_LEGACY_KERAS", "TF_CPP_MIN_LOG_LEVEL", "PEBR_VERBOSE")
    }
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**clean, **environment}
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [
        "import pebr_tf",
        "import pebr_tf.cli.main",
        "import components",
        "import pipeline",
        "import serving",
        "import tensorflow; import pebr_tf",
    ],
)
def test_keras_2_is_there_however_the_package_is_entered(entry):
    result = run(f"{entry}; {KERAS}; import tensorflow_recommenders")
    assert result.stdout == "tf_keras\n", result.stderr


@pytest.mark.slow
def test_it_is_quiet_and_speaks_when_asked():
    code = f"import pebr_tf; {KERAS}"
    assert run(code).stderr == ""
    assert "tensorflow" in run(code, PEBR_VERBOSE="1").stderr


@pytest.mark.slow
def test_too_late_for_keras_2_is_said():
    result = run("import tensorflow as tf; tf.keras.layers.Layer; import pebr_tf")
    assert result.returncode == 1
    assert (
        "ImportError: pebr_tf requires Keras 2: import it before tf.keras is first used, or set "
        "TF_USE_LEGACY_KERAS=1. Received: tf.keras from keras." in result.stderr
    )


def test_importing_the_package_imports_nothing_heavy():
    heavy = "{'tensorflow', 'numpy', 'pyarrow', 'yaml', 'tfx', 'apache_beam'}"
    code = f"import sys, pebr_tf, pebr_tf.cli.main; print({heavy} & set(sys.modules))"
    assert run(code).stdout == "set()\n"


def test_what_the_user_has_set_wins():
    code = "import os, pebr_tf; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    assert run(code, TF_CPP_MIN_LOG_LEVEL="1").stdout == "1\n"
    assert run(code).stdout == "3\n"


def test_verbose_gives_back_only_what_we_took():
    code = (
        "import os, pebr_tf; pebr_tf.environment.configure(verbose=True); "
        "print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'), os.environ.get('GRPC_VERBOSITY'))"
    )
    assert run(code, GRPC_VERBOSITY="INFO").stdout == "None INFO\n"

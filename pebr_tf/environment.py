"""The one place for environment variables of TensorFlow, Beam, TFX and object stores.

Every package of the project imports `pebr_tf` first, so `configure` runs before TensorFlow does,
however the code is entered. Four things are arranged:

* `TF_USE_LEGACY_KERAS=1`: TFX, tensorflow-recommenders and tensorflow-probability need Keras 2.
* `ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16`, unless the user has set it: some virtual machines advertise
  AMX and end the process with an illegal instruction when 16-bit products use it.
* Quiet: C++ start-up lines, Python-version warnings of cloud libraries and INFO logs are off unless
  `PEBR_VERBOSE=1` or `pebr --verbose` brings them back. A value that the user has set always wins.
* Imports that differ between the sets of versions work in both (see `pebr_tf.libraries`).
"""

import logging
import os
import sys
import warnings

from pebr_tf import libraries

_QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "GRPC_VERBOSITY": "ERROR",
    "GLOG_minloglevel": "2",
}
# The variable with the password of the database `pipeline.metadata`.
PASSWORD = "PEBR_METADATA_PASSWORD"
_own_variables: set[str] = set()


def is_verbose() -> bool:
    """Whether `PEBR_VERBOSE` asks for the frameworks' own output."""
    return os.environ.get("PEBR_VERBOSE", "0") not in ("", "0")


def s3_endpoint() -> str | None:
    """The address of an S3 server other than Amazon's, by the variable of Amazon's own tools."""
    return os.environ.get("AWS_ENDPOINT_URL") or None


def metadata_password() -> str:
    """The password of the database `pipeline.metadata`; empty if it needs none."""
    return os.environ.get(PASSWORD, "")


def configure(verbose: bool | None = None) -> None:
    """Prepares this process, and those it starts, for TensorFlow with Keras 2.

    `verbose` shows the frameworks' logs or hides them; None reads `PEBR_VERBOSE`.
    """
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    _require_keras_2()
    libraries.guard_imports()
    if verbose is None:
        verbose = is_verbose()
    os.environ["PEBR_VERBOSE"] = "1" if verbose else "0"
    if verbose:
        _restore_framework_logs()
    else:
        _silence_frameworks()


def _require_keras_2() -> None:
    """Checks a TensorFlow that was imported before us; `tf.keras` is resolved on its first use."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return
    origin = tensorflow.keras.layers.Layer.__module__
    if not origin.startswith("tf_keras."):
        raise ImportError(
            "pebr_tf requires Keras 2: import it before tf.keras is first used, or set "
            f"TF_USE_LEGACY_KERAS=1. Received: tf.keras from {origin}."
        )


def _silence_frameworks() -> None:
    for name, value in _QUIET.items():
        if name not in os.environ:
            os.environ[name] = value
            _own_variables.add(name)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    for module in ("google", "apache_beam", "tfx", "tensorflow_probability"):
        warnings.filterwarnings("ignore", category=FutureWarning, module=module)
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=module)


def _restore_framework_logs() -> None:
    for name in _own_variables:
        os.environ.pop(name, None)
    _own_variables.clear()
    logging.getLogger("tensorflow").setLevel(logging.INFO)

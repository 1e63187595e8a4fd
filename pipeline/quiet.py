"""Suppresses the log output of TFX and Beam unless it is requested."""

from __future__ import annotations

import logging

from pebr_tf.environment import is_verbose


def set_logging() -> None:
    """Sets the log levels of the frameworks."""
    from absl import logging as absl_logging

    if is_verbose():
        absl_logging.set_verbosity(absl_logging.INFO)
        return
    absl_logging.set_verbosity(absl_logging.FATAL)
    for name in ("absl", "tfx", "apache_beam", "root", "tensorflow"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

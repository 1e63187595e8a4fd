"""Keeps the thousands of lines of TFX and Beam to themselves, unless asked for."""

from __future__ import annotations

import logging

from pebr_tf.environment import is_verbose


def set_logging() -> None:
    """Sets what the frameworks may write to the log."""
    from absl import logging as absl_logging

    if is_verbose():
        absl_logging.set_verbosity(absl_logging.INFO)
        return
    absl_logging.set_verbosity(absl_logging.FATAL)
    for name in ("absl", "tfx", "apache_beam", "root", "tensorflow"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

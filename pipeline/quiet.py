"""Suppresses the log output of TFX and Beam unless it is requested."""

import logging

from rich.console import Console
from rich.markup import escape

from pebr_tf.environment import is_verbose


class _Warnings(logging.Handler):
    def __init__(self, console: Console):
        super().__init__(logging.WARNING)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(f"[yellow]{escape(record.getMessage())}[/yellow]", soft_wrap=True)


def set_logging(warnings: Console | None = None) -> None:
    """Sets the log levels of the frameworks; a console shows the warnings of this project."""
    from absl import logging as absl_logging

    if is_verbose():
        absl_logging.set_verbosity(absl_logging.INFO)
        return
    absl_logging.set_verbosity(absl_logging.FATAL)
    for name in ("absl", "tfx", "apache_beam", "root", "tensorflow"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if warnings is not None:
        for package in ("components", "pebr_tf", "pipeline", "serving"):
            logger = logging.getLogger(package)
            logger.setLevel(logging.WARNING)
            logger.propagate = False
            logger.addHandler(_Warnings(warnings))

"""Runs `pebr`, or one of its commands, in this process."""

import pytest
from click.testing import CliRunner

from pebr_tf.cli.main import main


def run(*arguments):
    """The exit code of `pebr` with these arguments."""
    with pytest.raises(SystemExit) as caught:
        main([*map(str, arguments)])
    return int(caught.value.code or 0)


def invoke(command, *arguments, **options):
    """The result of a command, or the error that `pebr` turns into one line and exit code 2."""
    result = CliRunner().invoke(command, [*map(str, arguments)], **options)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result

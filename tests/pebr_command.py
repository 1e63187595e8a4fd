"""Runs `pebr` in this process."""

import pytest

from pebr_tf.cli.main import main


def run(*arguments):
    """The exit code of `pebr` with these arguments."""
    with pytest.raises(SystemExit) as caught:
        main([*map(str, arguments)])
    return int(caught.value.code or 0)

"""Options that several commands share."""

from pathlib import Path

import click

out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Directory to write, new or empty.",
)
release_option = click.option(
    "--release",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="A release, or a folder of releases: the latest.",
)

"""`pebr fetch`: copies releases from a bucket to where servers look for them."""

import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from pebr_tf.errors import UserError


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL",
    help="Where releases are pushed to, such as gs://bucket/releases.",
)
@click.option(
    "--releases",
    type=click.Path(path_type=Path),
    required=True,
    metavar="ROOT",
    help="A folder of releases; made if it is not there.",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Seconds between attempts; runs until a signal.",
)
def fetch(source: str, releases: Path, every: int | None) -> None:
    """Copy the newest release from a bucket to a folder of releases.

    Servers that follow ROOT load it by themselves. With --every, a failed attempt prints one line
    and the next one follows; SIGTERM or Ctrl-C stops the command and leaves no incomplete release.
    """
    if every is not None:
        _follow(source, releases, every)
    from pebr_tf.release.versions import newest_version

    if not _fetch(source, releases):
        click.echo(f"release {newest_version(releases)} is here already")


def _fetch(source: str, releases: Path) -> bool:
    from pebr_tf.release import remote

    found = remote.fetch(source, releases)
    if found is not None:
        click.echo(f"release {found.name} -> {found}")
    return found is not None


def _follow(source: str, releases: Path, every: int) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    from pebr_tf.release import remote

    # A later attempt cannot fix an invalid address, so this error ends the command.
    source = remote.remote_folder(source)
    while True:
        try:
            _fetch(source, releases)
        except UserError as error:
            click.echo(f"pebr: {error}", err=True)
        time.sleep(every)

"""`pebr rollback`: withdraws releases from service, or restores them."""

import json

import click
from rich.markup import escape
from rich.table import Table

from pebr_tf import storage
from pebr_tf.cli.output import make_console
from pebr_tf.cutoff.cutoff_file import FILE_NAME as CUTOFF_FILE
from pebr_tf.cutoff.cutoff_file import default_of
from pebr_tf.errors import UserError
from pebr_tf.release.versions import (
    MANIFEST,
    newest_served,
    restore,
    roll_back,
    versions,
    withdrawn,
)

# The newest versions, which are those that a rollback is about.
SHOWN = 20


@click.command()
@click.option(
    "--releases",
    required=True,
    metavar="ROOT",
    help="A folder of releases, such as releases or gs://bucket/releases.",
)
@click.option(
    "--to", type=click.IntRange(min=0), metavar="VERSION", help="Withdraw all newer versions."
)
@click.option("--reason", metavar="TEXT", help="Why; stored with the withdrawal.")
@click.option(
    "--undo", type=click.IntRange(min=0), metavar="VERSION", help="Serve a withdrawn version again."
)
@click.option("--list", "only_list", is_flag=True, help="Only print the versions.")
def rollback(
    releases: str, to: int | None, reason: str | None, undo: int | None, only_list: bool
) -> None:
    """Withdraw the newest release, or serve a withdrawn one again.

    Servers that follow ROOT go to the newest version that is not withdrawn when they next look, and
    the pipeline uses no withdrawn model. Nothing is deleted.
    """
    _require_one(to, reason, undo, only_list)
    gone: list[int] = []
    try:
        if undo is not None:
            restore(releases, undo)
        elif not only_list:
            gone = roll_back(releases, to, reason or "")
    except OSError as error:
        raise UserError(f"{releases} must be writable. Received: {error}.") from error
    _print(releases)
    answering = newest_served(releases)
    _, _, model = _release_columns(releases, answering)
    if model and model in (_release_columns(releases, version)[-1] for version in gone):
        click.echo(
            f"pebr: version {answering} has the same model, which index-only runs push again. To "
            "withdraw the model, name the last version of another one with --to.",
            err=True,
        )


def _require_one(to: int | None, reason: str | None, undo: int | None, only_list: bool) -> None:
    given = {"--to": to, "--reason": reason, "--undo": undo, "--list": only_list or None}
    named = [name for name, value in given.items() if value is not None]
    alone = [name for name in ("--undo", "--list") if name in named]
    if alone and len(named) > 1:
        raise UserError(f"{alone[0]} must stand alone. Received: {', '.join(named)}.")


def _print(releases: str) -> None:
    found, gone = versions(releases), withdrawn(releases)
    if not found:
        raise UserError(f"{releases} must be a folder of releases.")
    answering = newest_served(releases)
    table = Table(box=None, pad_edge=False)
    for name in ("version", "pushed", "default knob", "model", "state"):
        table.add_column(name, no_wrap=name != "state")
    for version in reversed(found[-SHOWN:]):
        state = "[bold]serving[/bold]" if version == answering else "kept"
        if version in gone:
            entry = gone[version]
            state = escape(f"withdrawn {entry.time}{entry.reason and f': {entry.reason}'}")
        table.add_row(str(version), *_release_columns(releases, version), state)
    make_console().print(table)


def _release_columns(releases: str, version: int | None) -> tuple[str, str, str]:
    """Pushed when, with which knob, and the version that its model was first pushed as."""
    try:
        manifest = json.loads(storage.read_bytes(f"{releases}/{version}/{MANIFEST}"))
        default = default_of(storage.read_bytes(f"{releases}/{version}/{CUTOFF_FILE}"))
        # Releases from before 0.12 do not state their model.
        model = str(manifest["model"] or version) if "model" in manifest else ""
        return str(manifest["created"]), default, model
    except (UserError, OSError, ValueError, LookupError, TypeError):
        return "damaged", "", ""

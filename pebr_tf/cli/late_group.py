"""A click group whose subcommands are imported only when one of them runs."""

import importlib
import sys
from collections.abc import Mapping
from typing import NoReturn

import click

from pebr_tf.errors import UserError

# Name -> (module:attribute, the line of help that `--help` prints without importing the module).
Commands = Mapping[str, tuple[str, str]]


class LateGroup(click.Group):
    """A group that lists its subcommands by name and imports one when it is called."""

    def __init__(self, targets: Commands = (), **options: object):  # type: ignore[assignment]
        super().__init__(**options)  # type: ignore[arg-type]
        self.targets: Commands = dict(targets)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.targets)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.targets:
            return None
        module, attribute = self.targets[name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.targets.items()])


def run_command(command: click.Command, program: str, arguments: list[str] | None = None) -> None:
    """Runs a command; a user's mistake or a missing extra prints one sentence and exits with 2."""
    try:
        command.main(args=arguments, prog_name=program, standalone_mode=True)
    except UserError as error:
        _exit(program, str(error))
    except ModuleNotFoundError as error:
        _exit(
            program,
            "the packages that this command imports must be installed, for example by "
            "pip install '.[pipeline,cloud,experiments]' in a clone, or '.[pipeline,kubeflow]'. "
            f"Received: {error}.",
        )


def _exit(program: str, sentence: str) -> NoReturn:
    click.echo(f"{program.split()[-1]}: {sentence}", err=True)
    sys.exit(2)

"""Entry point of `pebr`: the subcommands of all installed packages in one group."""

from importlib.metadata import entry_points

import click

from pebr_tf import __version__, environment
from pebr_tf.cli.late_group import Commands, LateGroup, run_command

# A package adds subcommands through an entry point of this group that names its `COMMANDS`.
ENTRY_POINTS = "pebr_tf.commands"


def commands() -> Commands:
    """The subcommands of all packages, in alphabetical order."""
    found = [entry.load() for entry in entry_points(group=ENTRY_POINTS)]
    return dict(sorted(item for package in found for item in package.items()))


@click.group(
    cls=LateGroup, targets=commands(), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--verbose", is_flag=True, help="Let TensorFlow, Beam and TFX print their own logs.")
@click.version_option(__version__, prog_name="pebr")
def cli(verbose: bool) -> None:
    """Train, index, cut off and serve two-tower retrieval models that know how far to look."""
    if verbose:
        environment.configure(verbose=True)


def main(arguments: list[str] | None = None) -> None:
    """Runs `pebr`; a user's mistake prints one sentence and exits with 2."""
    run_command(cli, "pebr", arguments)


if __name__ == "__main__":
    main()

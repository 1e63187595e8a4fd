"""`pebr config`: writes a commented default, checks a file."""

from pathlib import Path

import click

from pebr_tf.config import Config, ConfigError

_MAX_NAMED = 5


@click.group()
def config() -> None:
    """Write or check a configuration file."""


@config.command()
@click.argument("path", type=click.Path(path_type=Path), default="pebr.yaml")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def init(path: Path, force: bool) -> None:
    """Write the defaults, with every key explained, to PATH (pebr.yaml)."""
    if path.exists() and not force:
        raise ConfigError(
            "", "be a new file, or --force must be given", "a file that exists", str(path)
        )
    Config().dump(path)
    click.echo(f"Wrote {path}.")


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check that FILE is a valid configuration."""
    loaded = Config.load(file)
    click.echo(f"{file} is valid.")
    click.echo(_model_line(loaded))
    click.echo(_changes_line(loaded))


def _model_line(loaded: Config) -> str:
    towers, cutoff = loaded.towers, loaded.cutoff
    return (
        f"{loaded.loss.family} on {towers.kind} towers of dimension {towers.dimension}, "
        f"cut off by {cutoff.policy} at {cutoff.default_knob} {cutoff.default_value:g}."
    )


def _changes_line(loaded: Config) -> str:
    changed = list(loaded.changes())
    if not changed:
        return "Every setting has its default."
    named = ", ".join(changed[:_MAX_NAMED])
    more = f" and {len(changed) - _MAX_NAMED} more" if len(changed) > _MAX_NAMED else ""
    return f"Not at the default: {named}{more}."

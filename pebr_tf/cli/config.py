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
@click.option("--clicks", metavar="FILE", help="A click log, or a glob: its columns are guessed.")
@click.option("--catalogue", metavar="FILE", help="The catalogue; its columns are guessed too.")
def init(path: Path, force: bool, clicks: str | None, catalogue: str | None) -> None:
    """Write the defaults, with every key explained, to PATH (pebr.yaml).

    With --clicks, the settings of data and features fit these files.
    """
    if catalogue and not clicks:
        raise ConfigError("--catalogue", "come with --clicks", catalogue)
    if path.exists() and not force:
        raise ConfigError(
            "", "be a new file, or --force must be given", "a file that exists", str(path)
        )
    if not clicks:
        Config().dump(path)
        click.echo(f"Wrote {path}.")
        return
    from pebr_tf.data.guess import guess_config
    from pebr_tf.data.look import unused_columns

    guessed = guess_config(clicks, catalogue)
    guessed.dump(path)
    click.echo(f"Wrote {path}.")
    click.echo(_columns_line(guessed))
    if unused := unused_columns(guessed):
        click.echo(f"Not used: {', '.join(unused)}.")
    click.echo(f"Next: pebr config check {path} --data, then pebr run --config {path}")


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", is_flag=True, help="Also look at the click log and the catalogue.")
def check(file: Path, data: bool) -> None:
    """Check that FILE is a valid configuration, and with --data that its files can be used.

    Exits with 2 and lists the problems if something would stop a run.
    """
    loaded = Config.load(file)
    click.echo(f"{file} is valid.")
    click.echo(_model_line(loaded))
    click.echo(_changes_line(loaded))
    if data:
        _check_data(loaded)


def _check_data(loaded: Config) -> None:
    from pebr_tf.data.look import look

    found = look(loaded)
    click.echo(_columns_line(loaded))
    for name, line in found.facts.items():
        click.echo(f"{name}: {line}.")
    for note in found.notes:
        click.echo(f"note: {note}.")
    for problem in found.problems:
        click.echo(f"pebr: {problem}", err=True)
    if found.problems:
        raise click.exceptions.Exit(2)


def _columns_line(loaded: Config) -> str:
    data, features = loaded.data, loaded.features
    meanings = {
        f"query ({features.query_kind})": data.query_column,
        "item id": data.item_column,
        "clicks": data.clicks_column,
        "time": data.timestamp_column,
        "item text": ", ".join(features.item_text),
    }
    named = (f"{name}: {column}" for name, column in meanings.items() if column)
    return f"Columns: {'; '.join(named)}."


def _model_line(loaded: Config) -> str:
    towers, cutoff = loaded.towers, loaded.cutoff
    # Calibration chooses a value that is not set.
    value = "auto" if cutoff.default_value is None else f"{cutoff.default_value:g}"
    return (
        f"{loaded.loss.family} on {towers.kind} towers of dimension {towers.dimension}, "
        f"cut off by {cutoff.policy} at {cutoff.default_knob} {value}."
    )


def _changes_line(loaded: Config) -> str:
    changed = list(loaded.changes())
    if not changed:
        return "Every setting has its default."
    named = ", ".join(changed[:_MAX_NAMED])
    more = f" and {len(changed) - _MAX_NAMED} more" if len(changed) > _MAX_NAMED else ""
    return f"Not at the default: {named}{more}."

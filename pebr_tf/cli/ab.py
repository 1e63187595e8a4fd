"""`pebr ab`: the read-out of an A/B test on real traffic."""

from pathlib import Path

import click
from rich.console import Console

from pebr_tf.errors import UserError


@click.command()
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"
)
@click.option("--user", default="user", show_default=True, help="Column of the randomised unit.")
@click.option("--arm", default="arm", show_default=True, help="Column of the arm.")
@click.option(
    "--ratio",
    "ratios",
    multiple=True,
    metavar="NUMERATOR/DENOMINATOR",
    help="Columns: a sum over a sum, as clicks/searches. May be given again.",
)
@click.option(
    "--mean", "means", multiple=True, metavar="COLUMN", help="Its sum per user. May be given again."
)
@click.option(
    "--binary",
    "binaries",
    multiple=True,
    metavar="COLUMN",
    help="Share of users who ever have it above 0. May be given again.",
)
@click.option(
    "--before",
    multiple=True,
    metavar="COLUMN=PAST",
    help="PAST holds the user's COLUMN before the test, for CUPED. May be given again.",
)
@click.option("--control", metavar="ARM", help="Default: control, or else the first by name.")
@click.option(
    "--expected",
    metavar="ARM=WEIGHT,...",
    help="Planned split of the users, as control=9,treatment=1. Default: even.",
)
@click.option("--confidence", default=0.95, show_default=True, help="Of the intervals.")
@click.option(
    "--json",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write all figures there.",
)
def ab(
    file: Path,
    user: str,
    arm: str,
    ratios: tuple[str, ...],
    means: tuple[str, ...],
    binaries: tuple[str, ...],
    before: tuple[str, ...],
    control: str | None,
    expected: str | None,
    confidence: float,
    output: Path | None,
) -> None:
    """Read out an A/B test: lifts, intervals and p-values by arm.

    FILE is CSV, TSV, JSONL or Parquet, with one row per user, session or search: the columns user
    and arm, and counts to measure. Rows of a user are summed: users vary independently.

    Unless metrics are named, these are measured where their columns exist: clicks, orders and
    conversions over searches, and the share of users with orders, conversions or converted.

    A sample-ratio mismatch is printed first and does not change the exit code.
    """
    from pebr_tf import ab as readout
    from pebr_tf.data.tables import Source
    from pebr_tf.files import replacing_file

    if output is not None and output.resolve() == file.resolve():
        raise UserError(f"--json must be another file than the log. Received: {output}.")
    source = Source.local(file)
    metrics = readout.named_metrics(ratios, means, binaries) or readout.default_metrics(
        readout.columns_of(source, user, arm, readout.DEFAULT_COLUMNS)
    )
    metrics = readout.with_past(metrics, before)
    users = readout.read_users(
        source,
        user,
        arm,
        [name for metric in metrics for name in metric.columns],
        [name for metric in metrics for name in metric.past],
    )
    analysis = readout.analyse(users, metrics, control, expected, confidence)
    console = Console(highlight=False)
    readout.print_analysis(console, analysis)
    if output is not None:
        try:
            with replacing_file(output) as temporary:
                temporary.write_text(analysis.to_json(), encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"--json must be a file that can be written. Received: {output} ({error.strerror})."
            ) from None
        console.print(f"Wrote {output}.", soft_wrap=True, markup=False)

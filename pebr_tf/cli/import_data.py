"""`pebr import`: public data as click logs."""

from pathlib import Path

import click
from rich.console import Console

from pebr_tf.cli.options import out_option
from pebr_tf.cli.output import print_facts


@click.group(name="import")
def import_data() -> None:
    """Turn public data into a click log."""


@import_data.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="PATH")
@out_option
def goodbooks(directory: Path, out: Path) -> None:
    """Read goodbooks-10k from PATH: tags are queries, books are items.

    PATH holds books.csv, tags.csv and book_tags.csv or book_tags.csv.zip. Writes a click log, the
    catalogue and pebr.yaml, a configuration that fits them, into DIR.

    `pebr run --config DIR/pebr.yaml` then takes some minutes, in any folder: its artifacts go to
    DIR/run and its releases to DIR/releases. The paths in pebr.yaml are absolute: edit them, or
    import again, when DIR moves.
    """
    from pebr_tf.data.goodbooks import write_goodbooks

    data = write_goodbooks(directory, out)
    queries = len(data.clicks["query"].unique())
    facts = {
        "books": f"{data.catalogue.num_rows:,}",
        "queries": f"{queries:,}",
        "pairs": f"{data.clicks.num_rows:,}",
        "books per query": f"{data.clicks.num_rows / queries:,.0f} on average",
    }
    console = Console(highlight=False)
    print_facts(console, facts, width=17)
    console.print(f"Wrote {out}.", soft_wrap=True, markup=False)

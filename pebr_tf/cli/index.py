"""`pebr index`: builds a search index from vectors, and checks one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from pebr_tf.cli.output import current_step, print_facts
from pebr_tf.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from pebr_tf.retrieval.artifact import IndexManifest

FILE = click.Path(path_type=Path)


@click.group()
def index() -> None:
    """Build a search index from vectors, or check one."""


@index.command()
@click.option("--vectors", type=FILE, required=True, help="Items, [N, n] .npy.")
@click.option("--out", type=FILE, required=True, metavar="DIR", help="Folder, new or empty.")
@click.option(
    "--ids", type=FILE, help="Item ids, [N] .npy of integers or text; default: 0 to N - 1."
)
@click.option("--queries", type=FILE, help="Queries to tune on, [Q, n] .npy.")
@click.option("--thresholds", type=FILE, help="Cosines at which their lists end, [Q] .npy.")
@click.option("--config", "config_file", type=FILE, help="Its `index` section is used.")
def build(
    vectors: Path,
    out: Path,
    ids: Path | None,
    queries: Path | None,
    thresholds: Path | None,
    config_file: Path | None,
) -> None:
    """Build an index from vectors.

    Real queries tune it best: without them, items with added noise stand in.
    """
    from pebr_tf.config import Config
    from pebr_tf.retrieval import build_index

    config = Config.load(config_file) if config_file else Config()
    begin = time.monotonic()
    with current_step("reading vectors") as progress:
        try:
            manifest = build_index(
                out,
                _array(vectors),
                ids=_array(ids),
                config=config.index,
                queries=_array(queries),
                thresholds=_array(thresholds),
                progress=progress,
            )
        except (ValueError, FileExistsError) as error:
            raise UserError(str(error)) from None
    _print(manifest, out, {"time": f"{time.monotonic() - begin:,.0f} s"})


@index.command()
@click.argument("directory", type=FILE)
def check(directory: Path) -> None:
    """Verify the checksums of an index, and its recall on its own queries."""
    from pebr_tf.retrieval import load_index
    from pebr_tf.retrieval.artifact import IndexManifest

    with current_step("reading vectors") as progress:
        progress("loading and searching")
        load_index(directory)
    manifest = IndexManifest.load(directory)
    _print(manifest, directory, {})
    found = ", and the stored queries find their items" if manifest.kind == "scann" else ""
    Console(highlight=False).print(f"All files are whole{found}.")


def _array(path: Path | None) -> np.ndarray | None:
    import numpy as np

    try:
        return path if path is None else np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} must be a .npy file. Received: {error}.") from None


def _print(manifest: IndexManifest, directory: Path, more: dict[str, str]) -> None:
    size = sum((directory / name).stat().st_size for name in manifest.files)
    facts = {
        "search": f"ScaNN, {manifest.leaves:,} leaves" if manifest.leaves else "exact",
        "items": f"{manifest.items:,} of {manifest.dimension} dimensions",
    }
    if recall := manifest.recall:
        facts["recall"] = (
            f"{recall['macro']:.4f} macro, {recall['micro']:.4f} micro, "
            f"on {recall['queries']:,} queries held out"
        )
    facts |= {"on disk": f"{size / 1e6:,.1f} MB", **more, "folder": str(directory)}
    print_facts(Console(highlight=False), facts)

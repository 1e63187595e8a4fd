"""A synthetic data set on disk.

The directory, with `*` for .parquet, .csv or .jsonl:

  dataset.json              parameters, files, columns, row counts, statistics
  clicks/clicks-00000-of-000NN.*          query, item_id, clicks, timestamp; one row per click
  catalogue/catalogue-00000-of-000NN.*    item_id, title, department, category, brand, model,
                                          attributes (`name=value`, a semicolon between two)
  queries.*                 query, level, department, category, brand, model, attributes (what it
                            asks for, empty for nothing), relevant (items), popularity (share)
  truth/truth-00000-of-000NN.*            the relevant items of every query

Truth in Parquet and JSON lines has one row per query: query, item_ids (a list of strings). CSV has
no lists, so there it has one row per relevant pair: query, item_id. A query never spans two truth
shards.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from pebr_tf import __version__
from pebr_tf.data.synthetic.clicks import END_TIME, START_TIME, ClickSampler
from pebr_tf.data.synthetic.levels import QUERY_KINDS
from pebr_tf.data.synthetic.spec import SyntheticSpec
from pebr_tf.data.synthetic.text import catalogue_table, constraint_columns, item_ids
from pebr_tf.data.synthetic.world import World, make_world
from pebr_tf.errors import UserError
from pebr_tf.files import new_directory

FORMATS = ("parquet", "csv", "jsonl")
CATALOGUE_SHARD_ITEMS = 250_000
TRUTH_SHARD_PAIRS = 1_000_000

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Summary:
    """What was written: counts, and percentiles of the relevant items per query.

    Attributes:
      noise_share: Share of the clicks that were drawn from the whole catalogue.
    """

    items: int
    queries: int
    clicks: int
    relevant_pairs: int
    relevant_p10: int
    relevant_p50: int
    relevant_p90: int
    relevant_max: int
    breadth_correlation: float
    noise_share: float


def write(
    spec: SyntheticSpec,
    out: Path,
    format: str = "parquet",
    progress: Progress = lambda part, done, total: None,
) -> Summary:
    """Makes a data set and writes it; the directory appears whole or not at all.

    `out` is new or empty. `progress` is called with the part, the rows written and all its rows.
    """
    if format not in FORMATS:
        raise UserError(f"--format must be one of {', '.join(FORMATS)}. Received: {format!r}.")
    try:
        with new_directory(Path(out).resolve()) as directory:
            return _write(spec, directory, format, progress)
    except FileExistsError:
        raise UserError(f"--out must be a new or an empty directory. Received: {out}.") from None
    except BrokenPipeError:
        # The reader of the progress has gone; the directory is not the cause.
        raise
    except OSError as error:
        reason = error.strerror or error
        raise UserError(
            f"--out must be a directory that can be written. Received: {out} ({reason})."
        ) from error


def write_table(table: pa.Table, path: Path) -> None:
    """Writes a table as .parquet, .csv (which cannot hold lists) or .jsonl, as the name ends."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for batch in table.to_batches(max_chunksize=65_536):
                lines = (json.dumps(row, ensure_ascii=False) for row in batch.to_pylist())
                file.writelines(f"{line}\n" for line in lines)


def queries_table(world: World) -> pa.Table:
    """The rows of `queries.*`, broad queries first."""
    queries = world.queries
    kinds = pa.array([kind.name for kind in QUERY_KINDS])
    return pa.table(
        {
            "query": queries.texts,
            "level": kinds.take(pa.array(queries.constraints.kind)),
            **constraint_columns(world.catalogue, queries.constraints),
            "relevant": queries.relevant_counts,
            "popularity": queries.popularity,
        }
    )


def truth_tables(world: World, starts: list[int], format: str) -> Iterator[pa.Table]:
    """The shards of the truth, each with the queries from its start to that of the next."""
    queries = world.queries
    for start, stop in zip(starts, [*starts[1:], len(queries)], strict=True):
        splits = queries.row_splits[start : stop + 1]
        ids = item_ids(queries.item_indices[splits[0] : splits[-1]], len(world.catalogue))
        texts = queries.texts.slice(start, stop - start)
        if format == "csv":
            owners = np.repeat(np.arange(stop - start, dtype=np.int32), np.diff(splits))
            yield pa.table({"query": texts.take(pa.array(owners)), "item_id": ids})
        else:
            offsets = pa.array((splits - splits[0]).astype(np.int32))
            yield pa.table({"query": texts, "item_ids": pa.ListArray.from_arrays(offsets, ids)})


class _Files:
    def __init__(self, directory: Path, format: str, progress: Progress):
        self._directory = directory
        self._format = format
        self._progress = progress
        self.description: dict[str, dict[str, object]] = {}

    def write(
        self, part: str, rows: int, tables: Iterable[pa.Table], shards: int | None = None
    ) -> None:
        """Writes `part/part-00000-of-000NN.*`, one file per table; without shards `part.*`."""
        name = f"{part}/{part}-*-of-{shards:05d}" if shards else part
        path = f"{name}.{self._format}"
        done = 0
        for number, table in enumerate(tables):
            file = self._directory / path.replace("*", f"{number:05d}")
            file.parent.mkdir(exist_ok=True)
            write_table(table, file)
            done += len(table)
            if shards:
                self._progress(part, done, rows)
        columns = table.column_names
        self.description[part] = {
            "path": path,
            "shards": shards or 1,
            "rows": rows,
            "columns": columns,
        }


def _write(spec: SyntheticSpec, directory: Path, format: str, progress: Progress) -> Summary:
    progress("world", 0, spec.items)
    world = make_world(spec)
    progress("world", spec.items, spec.items)
    files = _Files(directory, format, progress)
    starts = range(0, spec.items, CATALOGUE_SHARD_ITEMS)
    ends = [*starts[1:], spec.items]
    items = (
        catalogue_table(world.catalogue, start, end)
        for start, end in zip(starts, ends, strict=True)
    )
    files.write("catalogue", spec.items, items, len(starts))
    files.write("queries", spec.queries, [queries_table(world)])
    truth_rows = len(world.queries.item_indices) if format == "csv" else spec.queries
    truth_starts = _truth_starts(world)
    truth = truth_tables(world, truth_starts, format)
    files.write("truth", truth_rows, truth, len(truth_starts))
    sampler = ClickSampler(world, spec)
    noise = 0

    def click_tables() -> Iterator[pa.Table]:
        nonlocal noise
        for number in range(len(sampler)):
            columns = sampler.chunk(number)
            noise += int(np.count_nonzero(columns.is_noise))
            yield sampler.table(columns)

    files.write("clicks", spec.clicks, click_tables(), len(sampler))
    summary = _summary(world, spec, noise)
    description = {
        "name": "synthetic",
        "version": __version__,
        "format": format,
        "parameters": asdict(spec),
        "time": {"start": START_TIME, "end": END_TIME},
        "files": files.description,
        "statistics": asdict(summary),
    }
    text = json.dumps(description, indent=2) + "\n"
    (directory / "dataset.json").write_text(text, encoding="utf-8")
    return summary


def _truth_starts(world: World) -> list[int]:
    """First query of every truth shard: where the pairs before it pass a multiple of the size."""
    shard = world.queries.row_splits[:-1] // TRUTH_SHARD_PAIRS
    return [0, *(np.flatnonzero(np.diff(shard)) + 1).tolist()]


def _summary(world: World, spec: SyntheticSpec, noise: int) -> Summary:
    counts = world.queries.relevant_counts
    p10, p50, p90 = np.percentile(counts, [10, 50, 90], method="inverted_cdf")
    return Summary(
        items=spec.items,
        queries=spec.queries,
        clicks=spec.clicks,
        relevant_pairs=int(counts.sum()),
        relevant_p10=int(p10),
        relevant_p50=int(p50),
        relevant_p90=int(p90),
        relevant_max=int(counts.max()),
        breadth_correlation=world.breadth_correlation,
        noise_share=noise / spec.clicks,
    )

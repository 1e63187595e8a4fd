"""goodbooks-10k as a click log: tags are queries, books are items, taggings are clicks.

Left out: shelves that do not describe a book (`to-read`, `owned`), tags on fewer than 5 books or on
more than half of them, duplicate pairs, and counts below 1. With raw counts a few pairs would have
almost all clicks, so a pair counts ceil(log2(1 + count)).
"""

import contextlib
import csv
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from pebr_tf.config import Config, Cutoff, Data, Evaluation, Features, Pipeline
from pebr_tf.errors import UserError
from pebr_tf.files import new_directory

MIN_BOOKS, MAX_SHARE = 5, 0.5
# Shelves that describe what a reader did or owns, not the book.
SHELF = re.compile(
    r"^\d+$|\b(read|reading|reads|currently|own(ed)?|have|my|library|book ?shel(f|ves)|shel(f|ves)|"
    r"wish ?list|tbr|dnf|(un)?finished|finish|kindle|nook|calibre|audible|e ?books?|audio ?books?|"
    r"audio|paperbacks?|hard ?covers?|favou?rites?|faves|default|maybe|abandoned|borrowed|re ?read|"
    r"unread|reviewed|recommended|stars?|to buy|on hold)\b"
)


@dataclass(frozen=True)
class Goodbooks:
    """Clicks with query, item_id and clicks; items with item_id, title, authors, year, language."""

    clicks: pa.Table
    catalogue: pa.Table


def read_goodbooks(directory: Path) -> Goodbooks:
    """Reads books.csv, tags.csv and book_tags.csv (or book_tags.csv.zip)."""
    books = read_columns(
        directory,
        "books.csv",
        *("goodreads_book_id", "title", "authors", "original_publication_year", "language_code"),
    )
    tags = read_columns(directory, "tags.csv", "tag_id", "tag_name")
    rows = read_columns(directory, "book_tags.csv", "goodreads_book_id", "tag_id", "count")

    names = np.array([" ".join(re.findall(r"[^\W_]+", tag)) for tag in tags["tag_name"]], object)
    query_of = dict(zip(tags["tag_id"].tolist(), names.tolist(), strict=True))
    queries = np.array([query_of.get(tag, "") for tag in rows["tag_id"].tolist()], object)
    known = np.isin(rows["goodreads_book_id"], books["goodreads_book_id"])
    kept = known & (rows["count"] > 0) & (queries != "")
    pairs = pa.table(
        {
            "query": queries[kept].tolist(),
            "item_id": rows["goodreads_book_id"][kept].astype(str).tolist(),
            "count": rows["count"][kept],
        }
    )
    pairs = pairs.group_by(["query", "item_id"]).aggregate([("count", "max")])
    clicks = np.ceil(np.log2(1 + pairs["count_max"].to_numpy())).astype(np.int64)
    pairs = pa.table({"query": pairs["query"], "item_id": pairs["item_id"], "clicks": clicks})
    return Goodbooks(_of_queries(pairs, len(books["title"]), directory), _catalogue(books))


def write_goodbooks(directory: Path, out: Path) -> Goodbooks:
    """Reads goodbooks-10k from `directory` and writes its tables into a new folder."""
    data = read_goodbooks(directory)
    with new_directory(out) as scratch:
        for name, table in (("clicks", data.clicks), ("catalogue", data.catalogue)):
            (scratch / name).mkdir()
            pa.parquet.write_table(table, scratch / name / f"{name}.parquet")
        config(out).dump(scratch / "pebr.yaml")
    return data


def config(directory: Path) -> Config:
    """A configuration for the tables in `directory`; there are no times.

    The paths are absolute, so that it can be run from anywhere. Artifacts and releases stay in
    `directory`, apart from releases of other data.
    """
    directory = directory.absolute()
    return Config(
        data=Data(
            click_log=str(directory / "clicks" / "*.parquet"),
            catalogue=str(directory / "catalogue" / "*.parquet"),
            timestamp_column=None,
            payload_columns=("title", "authors"),
        ),
        features=Features(item_text=("title", "authors"), item_categories=("language", "year")),
        # A recall of 0.9 takes more than twice as many items.
        cutoff=Cutoff(default_value=0.8),
        evaluation=Evaluation(average_k=(100, 400)),
        pipeline=Pipeline(
            name="goodbooks", root=str(directory / "run"), releases=str(directory / "releases")
        ),
    )


def _of_queries(pairs: pa.Table, books: int, directory: Path) -> pa.Table:
    encoded = pairs["query"].combine_chunks().dictionary_encode()
    places = encoded.indices.to_numpy()
    sizes = np.bincount(places, minlength=len(encoded.dictionary))
    shelves = np.array([bool(SHELF.search(query)) for query in encoded.dictionary.to_pylist()])
    wanted = (sizes >= MIN_BOOKS) & (sizes <= MAX_SHARE * books) & ~shelves
    if not wanted.any():
        raise UserError(f"{directory} must have tags on {MIN_BOOKS} books or more. Received: none.")
    chosen = pairs.filter(pa.array(wanted[places]))
    return chosen.sort_by([("query", "ascending"), ("item_id", "ascending")])


def _catalogue(books: dict[str, np.ndarray]) -> pa.Table:
    years = [text.removesuffix(".0") for text in books["original_publication_year"]]
    return pa.table(
        {
            "item_id": books["goodreads_book_id"].astype(str).tolist(),
            "title": books["title"].tolist(),
            "authors": books["authors"].tolist(),
            "year": years,
            "language": books["language_code"].tolist(),
        }
    )


def read_columns(directory: Path, name: str, *columns: str) -> dict[str, np.ndarray]:
    """Columns of a file by name; those whose name ends in "id" or "count" hold integers."""
    try:
        with _opened(directory / name) as stream:
            lines = csv.reader(io.TextIOWrapper(stream, "utf-8", newline=""))
            header = next(lines, [])
            if not set(columns) <= set(header):
                raise ValueError(f"the columns {', '.join(header) or 'none'}")
            places = [header.index(column) for column in columns]
            rows = [[line[place] for place in places] for line in lines]
        if not rows:
            raise ValueError("no rows")
        return {
            column: np.array(values, int if column.endswith(("id", "count")) else object)
            for column, values in zip(columns, zip(*rows, strict=True), strict=True)
        }
    except (OSError, ValueError, LookupError, csv.Error, zipfile.BadZipFile) as error:
        raise UserError(
            f"{directory} must hold {name} of goodbooks-10k with the columns {', '.join(columns)}. "
            f"Received: {'a row that is too short' if isinstance(error, IndexError) else error}."
        ) from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, or the file of that name in the archive beside it."""
    packed = path.with_name(f"{path.name}.zip")
    if not path.exists() and packed.exists():
        with zipfile.ZipFile(packed) as archive, archive.open(path.name) as stream:
            yield stream
    else:
        with path.open("rb") as stream:
            yield stream

"""Checks the files of a configuration before a run: what they hold, and what would stop it."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.config import Config
from pebr_tf.data import splits
from pebr_tf.data.accounting import TITLES, Account
from pebr_tf.data.automatic import chosen_line
from pebr_tf.data.click_log import FUTURE, TWICE, UNKNOWN_ITEM
from pebr_tf.data.guess import FEW_ROWS, MOST, FirstRows
from pebr_tf.data.ingest_settings import IngestSettings
from pebr_tf.data.local_files import SPAN, local_sources
from pebr_tf.data.log_size import LogSize
from pebr_tf.data.tables import (
    Batch,
    Source,
    column_names,
    convert,
    read_table,
    require_columns,
)
from pebr_tf.errors import UserError

# Tables with more bytes are sampled: their first batches are read.
MAX_BYTES = 256 << 20
MAX_BATCHES = 16
# A larger share of the clicks is hardly one row.
MUCH = 0.1
# Files that take a second or two to read.
SMALL_BYTES = 32 << 20


@dataclass
class DataCheck:
    """The result of `look`.

    Attributes:
      facts: Lines for a reader, by name.
      notes: What stops no run, but is likely to be wrong or to matter.
      problems: Sentences about everything that would stop a run.
    """

    facts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def settings_of(config: Config) -> IngestSettings:
    return IngestSettings.of(config.data, config.split, config.features)


def columns_of(config: Config) -> dict[str, list[str]]:
    """The columns that `data.click_log` and `data.catalogue` must have."""
    settings = settings_of(config)
    columns = {"data.click_log": settings.click_columns[0]}
    if config.data.catalogue is not None:
        columns["data.catalogue"] = settings.item_columns
    return columns


def find_problems(config: Config) -> list[str]:
    """Missing files and columns, by the headers alone; files that are not local are not opened."""
    problems = []
    for key, columns in columns_of(config).items():
        try:
            for source in _sources(config, key)[:1]:
                require_columns(source, column_names(source), columns)
        except UserError as error:
            problems.append(str(error))
    return problems


def look(config: Config) -> DataCheck:
    """Reads the files, or the first batches of large ones, as ingestion does."""
    found = DataCheck(problems=find_problems(config))
    if found.problems:
        return found
    sources = {key: _sources(config, key) for key in columns_of(config)}
    if not all(sources.values()):
        # Some files are not local.
        return found
    try:
        for key, (first, *_) in sources.items():
            sample = FirstRows.of(first)
            kinds = [f"{name} ({sample.kind(name)})" for name in sample.columns.schema.names]
            found.facts[f"columns of {key}"] = ", ".join(kinds)
        _check_rows(config, found)
    except UserError as error:
        found.problems.append(str(error))
    return found


def look_at_small_log(config: Config) -> DataCheck:
    """`look`, or nothing for files that take long to read, are not local, or have spans."""
    sources = [_sources(config, key) for key in columns_of(config)]
    size = sum(os.path.getsize(source.name) for each in sources for source in each)
    # A run takes one span of several.
    spans = any(SPAN.search(config.value_at(key)) for key in columns_of(config))
    return look(config) if all(sources) and size <= SMALL_BYTES and not spans else DataCheck()


def unused_columns(config: Config) -> list[str]:
    """The columns of the files that a run does not read, with what they hold."""
    settings = settings_of(config)
    used = columns_of(config) | {"data.click_log": list(itertools.chain(*settings.click_columns))}
    samples = {key: FirstRows.of(_sources(config, key)[0]) for key in used}
    return [
        f"{name} ({sample.kind(name)})"
        for key, sample in samples.items()
        for name in sample.columns.schema.names
        if name not in used[key]
    ]


def _check_rows(config: Config, found: DataCheck) -> None:
    now = int(time.time())
    catalogue = None if config.data.catalogue is None else _items(config, found)
    table = _Table("clicks", _sources(config, "data.click_log"))
    kept = []
    settings, data = settings_of(config), config.data
    columns = {
        UNKNOWN_ITEM: data.item_column,
        **dict.fromkeys((FUTURE, "timestamp is not a time"), data.timestamp_column),
        "clicks is not a whole number": data.clicks_column,
    }
    for batch in table.batches(*settings.click_columns, data.timestamp_column):
        if catalogue is None:
            good, _ = settings.good_clicks_and_items(batch, now)
        else:
            good = settings.good_clicks(batch, now, catalogue)
        kept.append(table.count(good, batch, columns).columns)
    clicks = pa.Table.from_batches(kept).combine_chunks() if kept else None
    table.report(config.data.reject_limit, found)
    if clicks is None or not len(clicks):
        return
    items = len(catalogue if catalogue is not None else clicks["item_id"].unique())
    _check_plausible(config, clicks, found)
    _check_splits(config, clicks, items, table, found)


def _check_splits(
    config: Config, clicks: pa.Table, items: int, table: _Table, found: DataCheck
) -> None:
    query, item, moment, count = (
        clicks[name].combine_chunks() for name in ("query", "item_id", "timestamp", "clicks")
    )
    seconds = moment.to_numpy(zero_copy_only=False)
    begins = splits.held_out_from(config.split, seconds) if config.split.by == "time" else None
    assigned = splits.assign(config.split, query, item, seconds, begins)
    clicked = pc.greater(count, 0).to_numpy(zero_copy_only=False)
    rows, train = (
        dict(zip(splits.NAMES, np.bincount(each, minlength=3).tolist(), strict=True))
        for each in (assigned[clicked], assigned)
    )
    queries = {
        name: len(query.filter(pa.array(clicked & (assigned == number))).unique())
        for number, name in enumerate(splits.NAMES)
    }
    every = len(query.filter(pa.array(clicked)).unique())
    found.facts["queries"] = f"{every:,} ({config.features.query_kind})"
    if not clicked.all():
        found.facts["queries"] += f", with clicks in {clicked.mean():.1%} of the rows"
    found.facts["items"] = f"{items:,} ({_inputs(config)})"
    found.facts["held out"] = (
        f"clicks of {queries['calibrate']:,} queries calibrate, of {queries['test']:,} test"
    )
    if queries["calibrate"] < (least := config.cutoff.min_calibration_queries):
        found.notes.append(
            f"{queries['calibrate']:,} queries calibrate, fewer than {least:,} "
            "(cutoff.min_calibration_queries): the test queries calibrate too, by cross-fitting, "
            "and the recall has a wide confidence interval"
        )
    trained = len(query.filter(pa.array(assigned == splits.TRAIN)).unique())
    size = LogSize(int(train["train"] / table.share), trained, items)
    found.facts["auto"] = chosen_line(config, size)
    try:
        held_out = queries["calibrate"] + queries["test"]
        splits.check_splits(config.split, rows, every, held_out)
    except UserError as error:
        found.problems.append(str(error))


def _check_plausible(config: Config, clicks: pa.Table, found: DataCheck) -> None:
    """Notes of what is valid, but hardly meant."""
    data, rows = config.data, len(clicks)
    ids = len(clicks["item_id"].unique())
    if rows >= FEW_ROWS and ids > MOST * rows:
        found.notes.append(
            f"{data.item_column} has {ids:,} ids in {rows:,} rows: it must name items, not rows"
        )
    most, total = pc.max(clicks["clicks"]).as_py(), pc.sum(clicks["clicks"]).as_py()
    if rows >= FEW_ROWS and most > MUCH * total:
        found.notes.append(f"one row has {most:,} of {total:,} clicks ({data.clicks_column})")
    broken = pc.sum(pc.match_substring(clicks["query"], "\n")).as_py()
    if broken:
        found.notes.append(
            f"the queries of {broken:,} rows have line breaks, as an open quote makes them"
        )


class _Table:
    """Reads the files of a table, or the beginning of large ones, and counts rows.

    Attributes:
      reasons: Rejected rows by reason.
      share: Share of the bytes that were read.
    """

    def __init__(self, name: str, sources: list[Source]):
        self._name, self._sources = name, sources
        self._rows = 0
        self.reasons: collections.Counter[str] = collections.Counter()
        self._examples: dict[str, str] = {}
        self.share = 1.0

    def batches(
        self, required: list[str], optional: Sequence[str] = (), time: str | None = None
    ) -> Iterator[Batch]:
        """All batches of a small table; of a large one the first of each file."""
        sizes = [os.path.getsize(source.name) for source in self._sources]
        most = None if sum(sizes) <= MAX_BYTES else max(MAX_BATCHES // len(sizes), 1)
        read = 0
        for source, size in zip(self._sources, sizes, strict=True):
            opened: list[BinaryIO] = []
            watched = dataclasses.replace(source, open=functools.partial(_kept, source, opened))
            batches = read_table(watched, required, optional, time)
            yield from itertools.islice(batches, most)
            read += size if opened[0].closed else opened[0].tell()
        self.share = read / sum(sizes) if most else 1.0

    def count(self, batch: Batch, read: Batch, columns: dict[str, str | None]) -> Batch:
        """Counts the rows of a checked batch, and keeps a value of each reason with a column."""
        self._rows += len(batch) + len(batch.rejected)
        self.reasons.update(batch.rejected.reasons.tolist())
        for reason in set(batch.rejected.reasons) & columns.keys() - self._examples.keys():
            row = batch.rejected.rows[batch.rejected.reasons == reason][0]
            value = read.columns.column(columns[reason])[int(np.searchsorted(read.rows, row))]
            if (text := convert.text(pa.array([value.as_py()]))[0]).is_valid:
                self._examples[reason] = text.as_py()
        return batch

    def report(self, limit: float, found: DataCheck) -> None:
        """Adds the rows to the facts, and too many rejected rows to the problems."""
        good = self._rows - self.reasons.total()
        account = Account(
            self._name,
            [source.name for source in self._sources],
            self._rows,
            {self._name: good} if good else {},
            dict(self.reasons.most_common()),
            self._examples,
        )
        about = "" if self.share == 1 else "about "
        rejected = f"; rejected: {account.reasons_text}" if account.reasons else ""
        files = f" in {len(self._sources):,} files" if len(self._sources) > 1 else ""
        rows = f"{about}{int(self._rows / self.share):,} rows{files}{rejected}"
        found.facts[TITLES[self._name]] = rows
        try:
            account.check(limit)
        except UserError as error:
            found.problems.append(str(error))


def _items(config: Config, found: DataCheck) -> pa.Array:
    table = _Table("items", _sources(config, "data.catalogue"))
    ids = [pa.array([], pa.string())]
    settings = settings_of(config)
    for batch in table.batches(settings.item_columns):
        good = table.count(settings.good_items(batch), batch, {})
        ids.append(good.columns.column("item_id"))
    different = pa.chunked_array(ids).unique()
    if repeats := sum(map(len, ids)) - len(different):
        table.reasons[TWICE] = repeats
    table.report(config.data.reject_limit, found)
    return different


def _inputs(config: Config) -> str:
    features = config.features
    ids = (config.data.item_column,) if features.item_id else ()
    parts = {
        "text": features.item_text,
        "categories": features.item_categories,
        "numbers": features.item_numbers,
        "id": ids,
    }
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in parts.items() if names)


def _kept(source: Source, opened: list[BinaryIO]) -> BinaryIO:
    opened.append(source.open())
    return opened[-1]


def _sources(config: Config, key: str) -> list[Source]:
    return local_sources(key, config.value_at(key), config.data.format)

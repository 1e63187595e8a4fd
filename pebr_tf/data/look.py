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

from pebr_tf.config import Config
from pebr_tf.data import splits
from pebr_tf.data.accounting import TITLES, Account
from pebr_tf.data.automatic import chosen_line
from pebr_tf.data.guess import FirstRows
from pebr_tf.data.ingest_settings import IngestSettings
from pebr_tf.data.local_files import local_sources
from pebr_tf.data.log_size import LogSize
from pebr_tf.data.tables import Batch, Source, column_names, read_table, require_columns
from pebr_tf.errors import UserError

# Tables with more bytes are sampled: their first batches are read.
MAX_BYTES = 256 << 20
MAX_BATCHES = 16
# Logs that take a second or two to read.
SMALL_BYTES = 32 << 20


@dataclass
class DataCheck:
    """The result of `look`.

    Attributes:
      facts: Lines for a reader, by name.
      problems: Sentences about everything that would stop a run.
      held_out: Queries with held-out clicks, or None if the log was not read.
    """

    facts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    held_out: int | None = None


def settings_of(config: Config) -> IngestSettings:
    """What ingestion reads with a configuration."""
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
    """`look`, or nothing for a log that takes long to read or is not local."""
    sources = _sources(config, "data.click_log")
    size = sum(os.path.getsize(source.name) for source in sources)
    return look(config) if sources and size <= SMALL_BYTES else DataCheck()


def _check_rows(config: Config, found: DataCheck) -> None:
    now = int(time.time())
    catalogue = None if config.data.catalogue is None else _items(config, found)
    table = _Table("clicks", _sources(config, "data.click_log"))
    kept = []
    settings = settings_of(config)
    for batch in table.batches(*settings.click_columns, config.data.timestamp_column):
        if catalogue is None:
            good, _ = settings.good_clicks_and_items(batch, now)
        else:
            good = settings.good_clicks(batch, now, catalogue)
        kept.append(table.count(good).columns)
    clicks = pa.Table.from_batches(kept).combine_chunks() if kept else None
    table.report(config.data.reject_limit, found)
    if clicks is None or not len(clicks):
        return
    items = len(catalogue if catalogue is not None else clicks["item_id"].unique())
    _check_splits(config, clicks, items, table, found)


def _check_splits(
    config: Config, clicks: pa.Table, items: int, table: _Table, found: DataCheck
) -> None:
    query, item, moment = (
        clicks[name].combine_chunks() for name in ("query", "item_id", "timestamp")
    )
    seconds = moment.to_numpy(zero_copy_only=False)
    begins = splits.held_out_from(config.split, seconds) if config.split.by == "time" else None
    assigned = splits.assign(config.split, query, item, seconds, begins)
    rows = dict(zip(splits.NAMES, np.bincount(assigned, minlength=3).tolist(), strict=True))
    queries = {
        name: len(query.filter(pa.array(assigned == number)).unique())
        for number, name in enumerate(splits.NAMES)
    }
    found.facts["queries"] = f"{len(query.unique()):,} ({config.features.query_kind})"
    found.facts["items"] = f"{items:,} ({_inputs(config)})"
    found.facts["held out"] = (
        f"clicks of {queries['calibrate']:,} queries calibrate, of {queries['test']:,} test"
    )
    if queries["calibrate"] < (least := config.cutoff.min_calibration_queries):
        found.facts["note"] = (
            f"{queries['calibrate']:,} queries calibrate, fewer than {least:,} "
            "(cutoff.min_calibration_queries): the test queries calibrate too, by cross-fitting, "
            "and what is promised has a wide interval"
        )
    size = LogSize(int(rows["train"] / table.share), queries["train"], items)
    found.facts["auto"] = chosen_line(config, size)
    found.held_out = queries["calibrate"] + queries["test"]
    try:
        splits.check_splits(config.split, rows)
        splits.require_held_out(found.held_out)
    except UserError as error:
        found.problems.append(str(error))


class _Table:
    """Reads the files of a table, or the beginning of large ones, and counts rows.

    Attributes:
      share: Share of the bytes that were read.
    """

    def __init__(self, name: str, sources: list[Source]):
        self._name, self._sources = name, sources
        self._rows = 0
        self._reasons: collections.Counter[str] = collections.Counter()
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

    def count(self, batch: Batch) -> Batch:
        """Counts the rows of a checked batch."""
        self._rows += len(batch) + len(batch.rejected)
        self._reasons.update(batch.rejected.reasons.tolist())
        return batch

    def report(self, limit: float, found: DataCheck) -> None:
        """Adds the rows to the facts, and too many rejected rows to the problems."""
        good = self._rows - self._reasons.total()
        account = Account(
            self._name,
            [source.name for source in self._sources],
            self._rows,
            {self._name: good} if good else {},
            dict(self._reasons.most_common()),
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
    """The different ids of the catalogue."""
    table = _Table("items", _sources(config, "data.catalogue"))
    ids = [pa.array([], pa.string())]
    settings = settings_of(config)
    for batch in table.batches(settings.item_columns):
        ids.append(table.count(settings.good_items(batch)).columns.column("item_id"))
    table.report(config.data.reject_limit, found)
    return pa.chunked_array(ids).unique()


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

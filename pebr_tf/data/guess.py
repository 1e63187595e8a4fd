"""Guesses what the columns of a click log and of a catalogue mean, from names and a sample."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.config import Config, Data, Features
from pebr_tf.data.click_log import MOST_CLICKS
from pebr_tf.data.ingest_settings import CLICK_FEATURES
from pebr_tf.data.local_files import local_sources
from pebr_tf.data.tables import Rejected, Source, column_names, convert, read_table
from pebr_tf.errors import UserError

# Words of column names by meaning, the best first; `SearchTerm` and `search-term` are search_term.
QUERY = (
    *("query", "query_text", "search_query", "search_term", "search_terms", "searchterm"),
    *("keyword", "keywords", "search", "term", "q", "tag", "query_id", "qid", "search_id"),
)
ITEM = (
    *("item_id", "item", "product_id", "product", "asin", "sku", "doc_id", "docid", "document_id"),
    *("doc", "document", "article_id", "book_id", "movie_id", "listing_id", "entity_id", "iid"),
    *("pid", "clicked_item", "clicked_id", "clicked_url", "click_url", "handle", "id", "url"),
)
CLICKS = (
    *("clicks", "click_count", "n_clicks", "num_clicks", "clicked", "is_clicked", "is_click"),
    *("click", "count", "frequency", "freq", "n"),
)
TIME = (
    *("timestamp", "time", "datetime", "date", "ts", "event_time", "click_time", "created_at"),
    *("clicked_at", "event_timestamp", "day", "unix_time", "epoch"),
)
TEXT = (
    *("title", "item_title", "product_title", "name", "item_name", "product_name", "headline"),
    *("text", "description", "abstract", "body", "content"),
)
# Numbers, UUIDs and digests, also with a short prefix such as q17.
_ID = re.compile(
    r"[A-Za-z]{0,3}[-_]?[0-9]+(\.0)?|[0-9a-f]{16,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4,12}){4}"
)
_SAMPLE = 10_000
# Share of a sample that must agree with a guess, and the largest share of bad values.
MOST, _BAD = 0.95, 0.01
# A shorter log may have its items once each by chance.
FEW_ROWS = 100


@dataclass(frozen=True)
class FirstRows:
    source: Source
    columns: pa.RecordBatch
    rejected: Rejected

    @classmethod
    def of(cls, source: Source) -> FirstRows:
        """Reads the first rows; a file without rows has empty columns."""
        present = column_names(source)
        # A name that is not unique names no column.
        names = [name for name in present if name and present.count(name) == 1]
        batch = next(read_table(source, names), None) if names else None
        if batch is None:
            nothing = pa.RecordBatch.from_pydict({name: [] for name in names})
            return cls(source, nothing, Rejected.none())
        return cls(source, batch.columns.slice(0, _SAMPLE), batch.rejected)

    def named(self, words: Sequence[str], other_than: Sequence[str] = ()) -> list[str]:
        """The columns whose names are among `words`, in the order of `words`."""
        found = {_plain(name): name for name in reversed(self.columns.schema.names)}
        return [found[word] for word in words if word in found and found[word] not in other_than]

    def texts(self, name: str) -> list[str]:
        """The different texts of a column that are not empty."""
        values = convert.text(self.columns.column(name))
        return [text for text in pc.unique(values.drop_null()).to_pylist() if text.strip()]

    def converts(self, name: str, conversion: Callable[[pa.Array], pa.Array]) -> bool:
        """Whether most values of a column can be converted."""
        values = convert.without_empty(self.columns.column(name))
        bad = convert.lost(values, conversion(values))
        return len(bad) > 0 and bad.mean() <= _BAD and values.null_count < len(values)

    def kind(self, name: str) -> str:
        conversions = {
            "whole number": convert.whole_number,
            "number": convert.number,
            "time": _time,
        }
        fitting = (kind for kind, each in conversions.items() if self.converts(name, each))
        return next(fitting, "text")

    def has_ids(self, name: str) -> bool:
        """Whether most texts of a column are ids rather than words."""
        texts = self.texts(name)
        return sum(bool(_ID.fullmatch(text.strip())) for text in texts) > MOST * len(texts)

    def has_words(self, name: str) -> bool:
        """Whether a column has different texts, of two words or more on average."""
        texts = self.texts(name)
        return len(texts) > 1 and sum(len(text.split()) for text in texts) >= 2 * len(texts)

    def has_times(self, name: str) -> bool:
        """Whether most values of a column are times, as far as the file tells."""
        batch = next(read_table(self.source, [name], (), name), None)
        return bool(batch and replace(self, columns=batch.columns).converts(name, convert.time))

    def has_counts(self, name: str) -> bool:
        """Whether most values of a column are whole numbers, and all can be numbers of clicks."""
        numbers = convert.whole_number(convert.without_empty(self.columns.column(name)))
        least, most = pc.min_max(numbers.fill_null(0)).as_py().values()
        return self.converts(name, convert.whole_number) and 0 <= least <= most <= MOST_CLICKS

    def is_unique(self, name: str) -> bool:
        """Whether nearly every row has a value of its own."""
        rows = len(self.columns)
        return rows >= FEW_ROWS and len(self.texts(name)) > MOST * rows

    def describes(self, name: str, item: str, unless_repeated: bool = True) -> bool:
        """Whether a column has texts that belong to the items: rows of one item have one text.

        If no item has two rows, the result is `unless_repeated`.
        """
        if self.kind(name) != "text" or not (texts := self.texts(name)):
            return False
        if sum(text.lstrip().startswith(("{", "[")) for text in texts) > len(texts) / 2:
            return False
        ids, values = (convert.text(self.columns.column(key)) for key in (item, name))
        one = pa.array(np.ones(len(ids), np.int64))
        table = pa.table([ids, values, one], ["item", "text", "rows"])
        # An export may have a text in the first row of an item only.
        pairs = (
            table.filter(pc.not_equal(table["text"], ""))
            .group_by(["item", "text"])
            .aggregate([("rows", "sum")])
        )
        items = pairs.group_by("item").aggregate([("rows_sum", "max"), ("rows_sum", "sum")])
        repeated = items.filter(pc.greater(items["rows_sum_sum"], 1))
        if not len(repeated):
            return unless_repeated
        agreeing, rows = (pc.sum(repeated[f"rows_sum_{each}"]).as_py() for each in ("max", "sum"))
        return bool(agreeing >= MOST * rows)

    def require(self, words: Sequence[str], meaning: str, other_than: Sequence[str] = ()) -> str:
        if found := self.named(words, other_than):
            return found[0]
        present = column_names(self.source)
        hint = (
            " The first line must be the names of the columns."
            if any(_ID.fullmatch(name.strip()) for name in present)
            else f" If one of these holds the {meaning}, run pebr config init without --clicks, "
            "and set data.query_column and data.item_column."
        )
        raise UserError(
            f"{self.source.name} must have one column of {meaning}, such as {words[0]} or "
            f"{words[2]}. Received: {', '.join(present) or 'no column'}.{hint}"
        )


def guess_config(click_log: str, catalogue: str | None = None) -> Config:
    log = FirstRows.of(local_sources("--clicks", click_log)[0])
    if not len(log.columns) and (reasons := set(log.rejected.reasons)):
        raise UserError(
            f"{log.source.name} must have rows that can be read. "
            f"Received: {len(log.rejected):,} rows with {', '.join(sorted(reasons))}."
        )
    query = log.require(QUERY, "queries")
    items = log if catalogue is None else FirstRows.of(local_sources("--catalogue", catalogue)[0])
    item = _item_column(log, items, query)
    clicks = [name for name in log.named(CLICKS, (query, item)) if log.has_counts(name)]
    others = [name for name in log.columns.schema.names if name not in (query, item, *clicks)]
    times = log.named(TIME, (query, item, *clicks))
    times += [name for name in others if name not in times and log.kind(name) == "time"]
    times = [name for name in times if log.has_times(name)]
    taken = (query, item, *clicks, *times, *CLICK_FEATURES)
    texts = [name for name in items.named(TEXT, taken) if items.describes(name, item)]
    if not texts:
        others = [name for name in items.columns.schema.names if name not in taken]
        alone = items is not log
        texts = [n for n in others if items.has_words(n) and items.describes(n, item, alone)]
    return Config(
        data=Data(
            click_log=click_log,
            catalogue=catalogue,
            query_column=query,
            item_column=item,
            clicks_column=clicks[0] if clicks else None,
            timestamp_column=times[0] if times else None,
            payload_columns=tuple(texts[:1]),
        ),
        features=Features(
            query_kind="id" if log.has_ids(query) else "text",
            item_text=tuple(texts),
            # Nothing else is known of an item.
            item_id=not texts,
        ),
    )


def _item_column(log: FirstRows, items: FirstRows, query: str) -> str:
    """The column of item ids, which the log and the catalogue have."""
    if items is log:
        # A number of the row is no id of an item.
        return min(log.named(ITEM, (query,)), key=log.is_unique, default="") or log.require(
            ITEM, "item ids", (query,)
        )
    both = [name for name in log.columns.schema.names if name in items.columns.schema.names]
    both = [name for name in both if name != query and items.is_unique(name)]
    left = log.named(ITEM, (query,)) or both or [log.require(ITEM, "item ids", (query,))]
    right = items.named(ITEM) or both

    def fits(names: tuple[str, str]) -> tuple[bool, bool, float]:
        clicked, known = log.columns.column(names[0]), items.columns.column(names[1])
        found = pc.is_in(pc.unique(convert.item_id(clicked)), value_set=convert.item_id(known))
        share = pc.mean(found).as_py() or 0.0
        return share >= 0.5, names[0] == names[1], share

    item, found = max(itertools.product(left, right), key=fits, default=(left[0], ""))
    if item == found:
        return item
    same = f": {found} has the same values" if found and fits((item, found))[0] else ""
    raise UserError(
        f"{items.source.name} must have the column {item}, as the click log has it{same}. Rename "
        f"it in one of the files. Received: {', '.join(items.columns.schema.names)}."
    )


def _time(values: pa.Array) -> pa.Array:
    """Times, of dates in any order of day and month."""
    ambiguous = convert.date_orders(values) == set()
    return convert.time(convert.year_first(values, {"day"}) if ambiguous else values)


def _plain(name: str) -> str:
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")

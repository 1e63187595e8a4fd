"""Guesses what the columns of a click log and of a catalogue mean, from names and a sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.config import Config, Data, Features
from pebr_tf.data.local_files import local_sources
from pebr_tf.data.tables import Source, column_names, convert, read_table
from pebr_tf.errors import UserError

# Words of column names by meaning, the best first; `SearchTerm` and `search-term` are search_term.
QUERY = (
    *("query", "query_text", "search_query", "search_term", "search_terms", "searchterm"),
    *("keyword", "keywords", "search", "term", "q", "tag", "query_id", "qid", "search_id"),
)
ITEM = (
    *("item_id", "item", "product_id", "product", "asin", "sku", "doc_id", "docid", "document_id"),
    *("doc", "document", "article_id", "book_id", "movie_id", "listing_id", "entity_id", "iid"),
    *("pid", "clicked_item", "clicked_id", "id"),
)
CLICKS = ("clicks", "click_count", "n_clicks", "num_clicks", "count", "frequency", "freq", "n")
TIME = (
    *("timestamp", "time", "datetime", "date", "ts", "event_time", "click_time", "created_at"),
    *("day", "unix_time", "epoch"),
)
TEXT = (
    *("title", "item_title", "product_title", "name", "item_name", "product_name", "headline"),
    *("label", "text", "description", "abstract", "body", "content"),
)
# Numbers, UUIDs and digests, also with a short prefix such as q17.
_ID = re.compile(r"[A-Za-z]{0,3}[-_]?[0-9]+|[0-9a-f]{16,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4,12}){4}")
_SAMPLE = 10_000
# Share of a sample that must agree with a guess.
_MOST = 0.95


@dataclass(frozen=True)
class FirstRows:
    source: Source
    columns: pa.RecordBatch

    @classmethod
    def of(cls, source: Source) -> FirstRows:
        """Reads the first rows; a file without rows has empty columns."""
        names = column_names(source)
        batch = next(read_table(source, names), None)
        columns = pa.RecordBatch.from_pydict({name: [] for name in names})
        return cls(source, columns if batch is None else batch.columns.slice(0, _SAMPLE))

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
        return len(bad) > 0 and bad.mean() <= 1 - _MOST and values.null_count < len(values)

    def kind(self, name: str) -> str:
        conversions = {
            "whole number": convert.whole_number,
            "number": convert.number,
            "time": convert.time,
        }
        fitting = (kind for kind, each in conversions.items() if self.converts(name, each))
        return next(fitting, "text")

    def has_ids(self, name: str) -> bool:
        """Whether most texts of a column are ids rather than words."""
        texts = self.texts(name)
        return sum(bool(_ID.fullmatch(text.strip())) for text in texts) > _MOST * len(texts)

    def has_words(self, name: str) -> bool:
        """Whether the texts of a column have two words or more on average."""
        texts = self.texts(name)
        return sum(len(text.split()) for text in texts) >= 2 * len(texts) > 0

    def require(self, words: Sequence[str], meaning: str, other_than: Sequence[str] = ()) -> str:
        if found := self.named(words, other_than):
            return found[0]
        raise UserError(
            f"{self.source.name} must have a column of {meaning}, such as {words[0]} or "
            f"{words[2]}. Received: {', '.join(self.columns.schema.names) or 'no column'}."
        )


def guess_config(click_log: str, catalogue: str | None = None) -> Config:
    log = FirstRows.of(local_sources("--clicks", click_log)[0])
    query = log.require(QUERY, "queries")
    item = log.require(ITEM, "item ids", (query,))
    items = log
    if catalogue is not None:
        items = FirstRows.of(local_sources("--catalogue", catalogue)[0])
        if item not in items.columns.schema.names:
            raise UserError(
                f"{items.source.name} must have the column {item}, as the click log has it. "
                f"Received: {', '.join(items.columns.schema.names)}."
            )
    clicks = [name for name in log.named(CLICKS, (query, item)) if _counts(log, name)]
    times = [name for name in log.named(TIME, (query, item)) if log.converts(name, convert.time)]
    taken = (query, item, *clicks, *times)
    texts = [name for name in items.named(TEXT, taken) if items.texts(name)]
    if not texts:
        others = [name for name in items.columns.schema.names if name not in taken]
        texts = [name for name in others if items.has_words(name)]
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


def _counts(log: FirstRows, name: str) -> bool:
    if not log.converts(name, convert.whole_number):
        return False
    numbers = convert.whole_number(convert.without_empty(log.columns.column(name)))
    return bool((pc.min(numbers).as_py() or 0) >= 0)


def _plain(name: str) -> str:
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")

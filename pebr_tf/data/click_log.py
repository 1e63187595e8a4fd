"""Checks the rows of a click log and of a catalogue.

Checks run on whole columns. A row is rejected for the first reason that applies, and its number and
the reason go into the dead letters: rows read = rows kept + rows rejected.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.config import Data
from pebr_tf.data.tables import Batch, Rejected, convert

# Clocks differ: a click may be this many seconds ahead of the local clock.
CLOCK_SLACK = 3_600
Conversion = Callable[[pa.Array], pa.Array]
# Sums of so many clicks fit a number of 64 bits.
MOST_CLICKS = 10**9
UNKNOWN_ITEM = "item not in the catalogue"
FUTURE = "time in the future"
TWICE = "item twice"


def check_clicks(batch: Batch, data: Data, now: int, known: pa.Array | None = None) -> Batch:
    """Good clicks as columns `query`, `item_id` (text), `clicks` and `timestamp` (int64).

    Without a column of clicks a row counts as one click; without a column of times the time is 0.
    Clicks later than `now`, in seconds since 1970, and items that are not `known` are rejected.
    """
    checks = _Checks(batch)
    query = checks.required_text(data.query_column, "query")
    item = checks.required_text(data.item_column, "item_id", convert.item_id)
    clicks = checks.optional(data.clicks_column, convert.whole_number, "clicks", "a whole number")
    clicks = clicks.fill_null(1)
    checks.reject(_numpy(pc.less(clicks, 0)), "negative clicks")
    checks.reject(_numpy(pc.greater(clicks, MOST_CLICKS)), f"more than {MOST_CLICKS:,} clicks")
    time = checks.optional(data.timestamp_column, convert.time, "timestamp", "a time").fill_null(0)
    checks.reject(_numpy(pc.greater(time, now + CLOCK_SLACK)), FUTURE)
    if known is not None:
        found = pc.is_in(item, value_set=known)
        checks.reject(_numpy(pc.invert(found)), UNKNOWN_ITEM)
    return checks.passed({"query": query, "item_id": item, "clicks": clicks, "timestamp": time})


def check_items(
    batch: Batch, item_column: str, texts: Sequence[str], numbers: Sequence[str] = ()
) -> Batch:
    """Good items as columns `texts`, `numbers` (float32) and `item_id`.

    A missing text becomes empty, a missing number 0. The caller finds duplicate items: a batch does
    not see the other batches.
    """
    checks = _Checks(batch)
    item = checks.required_text(item_column, "item_id", convert.item_id)
    others = {name: checks.text(name, name).fill_null("") for name in texts}
    for name in numbers:
        values = checks.converted(name, convert.number, name, "a number")
        others[name] = pc.if_else(pc.is_nan(values), None, values).fill_null(0)
    return checks.passed({**others, "item_id": item})


def check_clicks_and_items(
    batch: Batch, data: Data, now: int, texts: Sequence[str], numbers: Sequence[str] = ()
) -> tuple[Batch, Batch]:
    """The rows of a log with item columns that are valid both as a click and as an item.

    Returns:
      As `check_clicks` and `check_items`, of the same rows; both with all rejected rows.
    """
    clicks = check_clicks(batch, data, now)
    left = np.isin(batch.rows, clicks.rows, assume_unique=True)
    rest = Batch(batch.columns.filter(pa.array(left)), clicks.rows, clicks.rejected)
    items = check_items(rest, data.item_column, texts, numbers)
    good = pa.array(np.isin(clicks.rows, items.rows, assume_unique=True))
    return Batch(clicks.columns.filter(good), items.rows, items.rejected), items


def item_columns(item_ids: pa.Array, items: pa.Table) -> dict[str, pa.Array]:
    """The columns of items by their ids; empty text or 0 for an id that `items` lacks."""
    places = pc.index_in(item_ids, value_set=items.column("item_id").combine_chunks())
    found = {}
    for name in (name for name in items.column_names if name != "item_id"):
        column = items.column(name).take(places).combine_chunks()
        found[name] = column.fill_null("" if pa.types.is_string(column.type) else 0)
    return found


class _Checks:
    def __init__(self, batch: Batch):
        self._batch = batch
        self._reasons = [""]
        self._reason = np.zeros(len(batch), np.int8)

    def reject(self, bad: np.ndarray, reason: str) -> None:
        """Rejects the rows where `bad` [M] is true, unless they are rejected already."""
        if bad.any():
            self._reason[bad & (self._reason == 0)] = len(self._reasons)
            self._reasons.append(reason)

    def text(self, column: str, name: str, conversion: Conversion = convert.text) -> pa.Array:
        return self.converted(column, conversion, name, "UTF-8 text")

    def required_text(
        self, column: str, name: str, conversion: Conversion = convert.text
    ) -> pa.Array:
        """The column as stripped text; rows without text are rejected."""
        values = pc.utf8_trim_whitespace(self.text(column, name, conversion))
        self.reject(_numpy(pc.equal(values, "").fill_null(True)), f"no {name}")
        return values

    def optional(
        self, column: str | None, conversion: Conversion, name: str, kind: str
    ) -> pa.Array:
        """The column as int64, all null if there is none."""
        if column is None or column not in self._batch.columns.schema.names:
            return pa.nulls(len(self._batch), pa.int64())
        return self.converted(column, conversion, name, kind)

    def converted(self, column: str, conversion: Conversion, name: str, kind: str) -> pa.Array:
        """The column after a conversion; null where a value is missing or rejected."""
        values = convert.without_empty(self._batch.columns.column(column))
        converted = conversion(values)
        self.reject(convert.lost(values, converted), f"{name} is not {kind}")
        return converted

    def passed(self, columns: dict[str, pa.Array]) -> Batch:
        """The rows that were not rejected, with these columns."""
        good = self._reason == 0
        table = pa.RecordBatch.from_pydict(columns)
        if good.all():
            return Batch(table, self._batch.rows, self._batch.rejected)
        reasons = np.array(self._reasons, object)[self._reason[~good]]
        rejected = Rejected(self._batch.rows[~good], reasons)
        return Batch(
            table.filter(pa.array(good)),
            self._batch.rows[good],
            self._batch.rejected.and_also(rejected),
        )


def _numpy(mask: pa.Array) -> np.ndarray:
    """[M] bool; null is false."""
    return mask.fill_null(False).to_numpy(zero_copy_only=False)

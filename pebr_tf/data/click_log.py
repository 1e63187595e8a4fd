"""What makes a row of a click log or of a catalogue a good one.

Checks run on whole columns. A row is refused for the first reason that holds, and its number goes
with the reason into the dead letters: rows read = rows kept + rows refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.config import Data
from pebr_tf.data.tables import Batch, Rejected, convert

# Clocks differ: a click may be so many seconds ahead of ours.
CLOCK_SLACK = 3_600


def check_clicks(batch: Batch, data: Data, now: int, known: pa.Array | None = None) -> Batch:
    """Good clicks as columns `query`, `item_id` (text), `clicks` and `timestamp` (int64).

    Without a column of clicks a row is one; without a column of times the time is 0.

    Args:
      batch: Rows of a click log, as read.
      data: What its columns are called.
      now: Seconds since 1970; later clicks are refused.
      known: Ids of the catalogue; None does not check.
    """
    checks = _Checks(batch)
    query = checks.required_text(data.query_column, "query")
    item = checks.required_text(data.item_column, "item_id")
    clicks = checks.number(
        data.clicks_column, "clicks is not a whole number", convert.whole_number, default=1
    )
    checks.refuse(_numpy(pc.less(clicks, 0)), "negative clicks")
    time = checks.number(data.timestamp_column, "timestamp is not a time", convert.time, default=0)
    checks.refuse(_numpy(pc.greater(time, now + CLOCK_SLACK)), "time in the future")
    if known is not None:
        found = pc.is_in(item, value_set=known)
        checks.refuse(_numpy(pc.invert(found)), "item not in the catalogue")
    return checks.passed({"query": query, "item_id": item, "clicks": clicks, "timestamp": time})


def check_items(batch: Batch, item_column: str, texts: Sequence[str]) -> Batch:
    """Good items as columns `item_id` and `texts`, all text; a missing text is empty.

    An item twice is for the caller to find: a batch does not see the others.
    """
    checks = _Checks(batch)
    item = checks.required_text(item_column, "item_id")
    others = {name: checks.text(name, name).fill_null("") for name in texts}
    return checks.passed({**others, "item_id": item})


class _Checks:
    """Collects the first reason against each row of a batch."""

    def __init__(self, batch: Batch):
        self._batch = batch
        self._reasons = [""]
        self._reason = np.zeros(len(batch), np.int8)

    def refuse(self, bad: np.ndarray, reason: str) -> None:
        """Refuses the rows where `bad` [M] is true, unless they are already."""
        if bad.any():
            self._reason[bad & (self._reason == 0)] = len(self._reasons)
            self._reasons.append(reason)

    def text(self, column: str, name: str) -> pa.Array:
        """The column as text."""
        values, bad = convert.text(self._batch.columns.column(column))
        self.refuse(bad, f"{name} is not UTF-8 text")
        return values

    def required_text(self, column: str, name: str) -> pa.Array:
        """The column as text without spaces around it, in every row."""
        values = pc.utf8_trim_whitespace(self.text(column, name))
        self.refuse(_numpy(pc.equal(values, "").fill_null(True)), f"no {name}")
        return values

    def number(
        self,
        column: str | None,
        reason: str,
        conversion: Callable[[pa.Array], convert.Converted],
        default: int,
    ) -> pa.Array:
        """The column as int64, with a default where it or its value is missing."""
        if column is None or column not in self._batch.columns.schema.names:
            return pa.array(np.full(len(self._batch), default))
        numbers, bad = conversion(convert.without_empty(self._batch.columns.column(column)))
        self.refuse(bad, reason)
        return numbers.fill_null(default)

    def passed(self, columns: dict[str, pa.Array]) -> Batch:
        """The rows that nothing speaks against, with these columns."""
        good = self._reason == 0
        table = pa.RecordBatch.from_pydict(columns)
        if good.all():
            return Batch(table, self._batch.rows, self._batch.rejected)
        reasons = np.array(self._reasons, object)[self._reason[~good]]
        refused = Rejected(self._batch.rows[~good], reasons)
        return Batch(
            table.filter(pa.array(good)),
            self._batch.rows[good],
            self._batch.rejected.and_also(refused),
        )


def _numpy(mask: pa.Array) -> np.ndarray:
    """[M] bool; null is false."""
    return mask.fill_null(False).to_numpy(zero_copy_only=False)

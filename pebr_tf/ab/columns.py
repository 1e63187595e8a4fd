"""Converts columns of a log to text and amounts; errors name the first bad value and its row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.data.tables import Batch, convert
from pebr_tf.errors import UserError

SHOWN = 40
# Truth values as programs write them.
TRUE, FALSE = (rf"^\s*(?i:{word})\s*$" for word in ("true", "false"))


def texts(file: str, batch: Batch, column: str) -> pa.Array:
    """[M] text; raises a UserError where a value is missing, empty or not text."""
    written = convert.text(convert.without_empty(_values(batch, column)))
    bad = written.is_null().to_numpy(zero_copy_only=False)
    if bad.any():
        _reject(file, batch, column, "have a value", bad)
    return written


def amounts(file: str, batch: Batch, column: str) -> np.ndarray:
    """[M] float64 from 0 up; true is 1 and false 0."""
    numbers = _numbers(_values(batch, column)).to_numpy(zero_copy_only=False)
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        _reject(file, batch, column, "be a number from 0 up", bad)
    return numbers


def _numbers(values: pa.Array) -> pa.Array:
    """float64; null for what is no number."""
    if not convert.is_number(values.type):
        values = convert.text(values)
        try:
            return values.cast(pa.float64())
        except pa.ArrowInvalid:
            for pattern, digit in ((TRUE, "1"), (FALSE, "0")):
                values = pc.replace_substring_regex(values, pattern, digit)
    return convert.wide_number(values)


def _values(batch: Batch, column: str) -> pa.Array:
    if column not in batch.columns.schema.names:
        # JSON lines may leave the column out.
        return pa.nulls(len(batch), pa.string())
    return batch.columns.column(column)


def _reject(file: str, batch: Batch, column: str, required: str, bad: np.ndarray) -> None:
    index = int(np.argmax(bad))
    value = _values(batch, column)[index].as_py()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    received = "nothing" if value is None or value == "" else str(value)[:SHOWN]
    raise UserError(
        f"{column} of {file} must {required} in every row. Received: {received} in row "
        f"{batch.rows[index]}."
    )

"""Converts columns of a log to text and amounts; errors name the first bad value and its row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.data.tables import Batch, convert
from pebr_tf.errors import UserError

SHOWN = 40
# Truth values as programs write them.
TRUTH = r"^\s*(?i:true|false)\s*$"


def texts(file: str, batch: Batch, column: str) -> pa.Array:
    """[M] text; raises a UserError where a value is missing, empty or not text."""
    values = _values(batch, column)
    written, bad = convert.text(convert.without_empty(values))
    bad = bad | written.is_null().to_numpy(zero_copy_only=False)
    if bad.any():
        _reject(file, batch, column, "have a value", bad)
    return written


def amounts(file: str, batch: Batch, column: str) -> np.ndarray:
    """[M] float64 from 0 up; true is 1 and false 0.

    Raises:
      UserError: A value is missing, not a number, not finite or below 0.
    """
    values = _values(batch, column)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not _is_number(values.type):
        values = _written(values)
    numbers = np.array(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        _reject(file, batch, column, "be a number from 0 up", bad)
    return numbers


def _written(values: pa.Array) -> pa.Array:
    written, _ = convert.text(values)
    try:
        return written.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    truth = pc.match_substring_regex(written, TRUTH)
    yes = pc.match_substring_regex(written, r"(?i)true")
    is_number = pc.match_substring_regex(written, convert.NUMBER)
    trimmed = pc.replace_substring_regex(written, r"^\s*\+?|\s*$", "")
    numbers = pc.if_else(is_number, trimmed, None).cast(pa.float64())
    return pc.if_else(truth, yes.cast(pa.int8()).cast(pa.float64()), numbers)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


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

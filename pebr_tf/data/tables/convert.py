"""Converts columns of file values to text, numbers and times.

Every function returns null for a value that it cannot convert, and for a missing one; `lost` tells
them apart.
"""

import datetime
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Spaces around a number, and a whole number that some tool wrote as 3.0.
WHOLE_NUMBER = r"^\s*[+-]?[0-9]{1,18}(\.0*)?\s*$"
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
# An all-digit time of so many digits is in milliseconds, else in seconds since 1970.
MILLISECONDS = 10**11

DAY_AND_MONTH = re.compile(r"^\s*([0-9]{1,2})[/.]([0-9]{1,2})[/.]([0-9]{4})(?![0-9])")


def lost(values: pa.Array, converted: pa.Array) -> np.ndarray:
    """[M] bool: whether there is a value that was not converted."""
    return pc.and_(values.is_valid(), converted.is_null()).to_numpy(zero_copy_only=False)


def text(values: pa.Array) -> pa.Array:
    """Text that is UTF-8; numbers as they are written."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:
            return pa.array(map(_decoded, values.to_pylist()), pa.string())
    if pa.types.is_floating(values.type):
        values = whole_number(values)
    kind = values.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string())
    return pa.nulls(len(values), pa.string())


def without_empty(values: pa.Array) -> pa.Array:
    """The values with null in place of empty text, as a CSV file writes it."""
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return pc.if_else(pc.equal(pc.binary_length(values), 0), None, values)
    return values


def whole_number(values: pa.Array) -> pa.Array:
    """int64."""
    if pa.types.is_integer(values.type):
        if values.type != pa.uint64():
            return values.cast(pa.int64())
        most = pa.scalar(np.iinfo(np.int64).max, pa.uint64())
        return _where(pc.less_equal(values, most), values, pa.int64())
    if pa.types.is_floating(values.type):
        whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), 2.0**53))
        return _where(whole, values, pa.int64())
    written = text(values)
    trimmed = pc.replace_substring_regex(written, r"^\s*\+?|(\.0*)?\s*$", "")
    return _where(pc.match_substring_regex(written, WHOLE_NUMBER), trimmed, pa.int64())


def number(values: pa.Array) -> pa.Array:
    """float32, also NaN; but no number that float32 cannot hold."""
    numbers = wide_number(values)
    too_large = pc.greater(pc.abs(numbers), float(np.finfo(np.float32).max))
    return _where(pc.invert(too_large), numbers, pa.float32())


def wide_number(values: pa.Array) -> pa.Array:
    """float64; NaN and infinity only where the file has them as numbers, not as text."""
    if is_number(values.type):
        return values.cast(pa.float64(), safe=False)
    written = text(values)
    trimmed = pc.replace_substring_regex(written, r"^\s*\+?|\s*$", "")
    return _where(pc.match_substring_regex(written, NUMBER), trimmed, pa.float64())


def time(values: pa.Array) -> pa.Array:
    """int64 seconds since 1970 in UTC.

    Of numbers (seconds or milliseconds), dates, ISO 8601, and 31/12/2024 23:59 or 12/31/2024 23:59
    where some value tells which of them the column has.
    """
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        seconds = values.cast(pa.timestamp("us")).cast(pa.timestamp("s"), safe=False)
        return seconds.cast(pa.int64())
    numbers = whole_number(values)
    milliseconds = pc.greater_equal(pc.abs(numbers), MILLISECONDS)
    seconds = pc.if_else(milliseconds, pc.divide(numbers, 1000), numbers)
    if is_number(values.type):
        return seconds
    written = text(values)
    left = lost(written, numbers)
    if not left.any():
        return seconds
    others = _instants(written.filter(pa.array(left)))
    places = np.cumsum(left) - 1
    return pc.if_else(pa.array(left), others.take(pa.array(places.clip(0))), seconds)


def _instants(written: pa.Array) -> pa.Array:
    """Seconds of ISO 8601: at once where all are alike, else one by one."""
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return time(written.cast(kind))
        except pa.ArrowInvalid:
            continue
    return pa.array(map(_instant, _with_year_first(written.to_pylist())), pa.int64())


def _with_year_first(texts: list[str]) -> list[str]:
    """31/12/2024 and 12/31/2024 as 2024-12-31; unchanged if no value tells day from month."""
    found = [DAY_AND_MONTH.match(text) for text in texts]
    first, second = ({int(each[n]) for each in found if each} for n in (1, 2))
    day_first, month_first = max(first, default=0) > 12, max(second, default=0) > 12
    if day_first == month_first:
        return texts
    order = r"\3-\2-\1" if day_first else r"\3-\1-\2"
    return [DAY_AND_MONTH.sub(lambda date: _padded(date.expand(order)), text) for text in texts]


def _padded(date: str) -> str:
    year, month, day = date.split("-")
    return f"{year}-{month:0>2}-{day:0>2}"


def _instant(value: str) -> int | None:
    try:
        # Python 3.10 knows neither the Z nor fractions of any length.
        written = re.sub(r"[.,][0-9]+", "", value.strip()).replace("Z", "+00:00")
        written = re.sub(r"^(\d{4})/(\d\d)/(\d\d)", r"\1-\2-\3", written)
        moment = datetime.datetime.fromisoformat(written)
    except ValueError:
        return None
    return int(moment.replace(tzinfo=moment.tzinfo or datetime.timezone.utc).timestamp())


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers; truth values are 0 and 1."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _where(convertible: pa.Array, values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.if_else(convertible, values, None).cast(kind)

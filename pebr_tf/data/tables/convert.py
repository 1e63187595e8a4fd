"""Values as files have them made into text, numbers and times, a column at once.

Every function returns the values of the rows that can be converted, null elsewhere, and [M] bool,
true where a value is there but cannot be.
"""

from __future__ import annotations

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

Converted = tuple[pa.Array, np.ndarray]


def text(values: pa.Array) -> Converted:
    """Text; numbers as they are written, with bytes that are not UTF-8 as bad."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values.cast(pa.string()), _none_of(values)
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return _decoded(values)
    if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        return values.cast(pa.string()), _none_of(values)
    if pa.types.is_floating(values.type):
        numbers, bad = whole_number(values)
        return numbers.cast(pa.string()), bad
    return pa.nulls(len(values), pa.string()), _valid(values)


def without_empty(values: pa.Array) -> pa.Array:
    """The values with null in place of empty text, as a CSV file writes it."""
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return pc.if_else(pc.equal(pc.binary_length(values), 0), None, values)
    return values


def whole_number(values: pa.Array) -> Converted:
    """int64."""
    if pa.types.is_integer(values.type):
        if values.type != pa.uint64():
            return values.cast(pa.int64()), _none_of(values)
        most = pa.scalar(np.iinfo(np.int64).max, pa.uint64())
        return _where(values, pc.less_equal(values, most), pa.int64())
    if pa.types.is_floating(values.type):
        whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), 2.0**53))
        return _where(values, whole, pa.int64())
    written, bad = text(values)
    matches = pc.match_substring_regex(written, WHOLE_NUMBER)
    trimmed = pc.replace_substring_regex(written, r"^\s*\+?|(\.0*)?\s*$", "")
    numbers, not_numbers = _where(trimmed, matches, pa.int64())
    return numbers, bad | not_numbers


def number(values: pa.Array) -> Converted:
    """float32; NaN is a missing number, one that float32 cannot hold is bad."""
    numbers, bad = wide_number(values)
    numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
    fits = pc.less_equal(pc.abs(numbers), float(np.finfo(np.float32).max))
    held, too_large = _where(numbers, fits, pa.float32())
    return held, bad | too_large


def wide_number(values: pa.Array) -> Converted:
    """float64, with NaN and infinity where the file has them as numbers."""
    if is_number(values.type):
        return values.cast(pa.float64(), safe=False), _none_of(values)
    written, bad = text(values)
    matches = pc.match_substring_regex(written, NUMBER)
    trimmed = pc.replace_substring_regex(written, r"^\s*\+?|\s*$", "")
    numbers, not_numbers = _where(trimmed, matches, pa.float64())
    return numbers, bad | not_numbers


def time(values: pa.Array) -> Converted:
    """int64 seconds since 1970 in UTC.

    Of numbers (seconds or milliseconds), dates, ISO 8601, and 31/12/2024 23:59 or 12/31/2024 23:59
    where some value tells which of them the column has.
    """
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        seconds = values.cast(pa.timestamp("us")).cast(pa.timestamp("s"), safe=False)
        return seconds.cast(pa.int64()), _none_of(values)
    numbers, bad = whole_number(values)
    if not bad.any():
        return _seconds(numbers), bad
    written, _ = text(values)
    return _parsed(written, numbers, bad)


def _parsed(written: pa.Array, numbers: pa.Array, bad: np.ndarray) -> Converted:
    others, _ = _instants(written.filter(pa.array(bad)))
    places = np.cumsum(bad) - 1
    times = pc.if_else(pa.array(bad), others.take(pa.array(places.clip(0))), _seconds(numbers))
    return times, bad & ~_valid(times)


def _instants(written: pa.Array) -> Converted:
    """Seconds of ISO 8601: at once where all are alike, else one by one."""
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return time(written.cast(kind))
        except pa.ArrowInvalid:
            continue
    texts = _with_year_first(written.to_pylist())
    seconds = pa.array([_instant(value) for value in texts], pa.int64())
    return seconds, ~_valid(seconds)


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


def _seconds(numbers: pa.Array) -> pa.Array:
    milliseconds = pc.greater_equal(pc.abs(numbers), MILLISECONDS)
    return pc.if_else(milliseconds, pc.divide(numbers, 1000), numbers)


def _decoded(values: pa.Array) -> Converted:
    try:
        return values.cast(pa.string()), _none_of(values)
    except pa.ArrowInvalid:
        pass
    bad = np.array([not _is_utf8(value) for value in values.to_pylist()], bool)
    return pc.if_else(pa.array(bad), None, values).cast(pa.string()), bad


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


def _where(values: pa.Array, convertible: pa.Array, kind: pa.DataType) -> Converted:
    bad = ~convertible.fill_null(True).to_numpy(zero_copy_only=False)
    return pc.if_else(pa.array(~bad), values, None).cast(kind), bad


def _valid(values: pa.Array) -> np.ndarray:
    return values.is_valid().to_numpy(zero_copy_only=False)


def _none_of(values: pa.Array) -> np.ndarray:
    return np.zeros(len(values), bool)

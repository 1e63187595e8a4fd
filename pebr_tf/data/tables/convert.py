"""Converts columns of file values to text, numbers and times.

Every function returns null for a value that it cannot convert, and for a missing one; `lost` tells
them apart.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Spaces around a number, and a whole number that some tool wrote as 3.0.
WHOLE_NUMBER = r"^\s*[+-]?([0-8]?[0-9]{1,18})(\.0*)?\s*$"
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
# Numbers from each limit on are so many parts of a second since 1970; smaller ones are seconds.
PARTS = ((10**11, 10**3), (10**14, 10**6), (10**17, 10**9))
# Numbers that are a day, or a day and a time of it: 20240301, 20240301235959.
DAYS = ((1900_01_01, 2100_00_00), (1900_01_01_00_00_00, 2100_00_00_00_00_00))
SECONDS_WITH_FRACTION = r"^(\s*[0-9]{9,19})\.[0-9]*\s*$"
# 31/12/2024 or 12/31/2024, and the rest.
DATE = (
    r"(?s)^\s*(?P<first>[0-9]{1,2})(?P<mark>[/.])(?P<second>[0-9]{1,2})[/.]"
    r"(?P<year>[0-9]{4})(?P<rest>[^0-9].*)?$"
)
INSTANT = (
    r"^\s*(?P<year>[0-9]{4})[-/]?(?P<month>[0-9]{1,2})[-/]?(?P<day>[0-9]{1,2})"
    r"(?:[T, ]*(?P<hour>[0-9]{1,2}):?(?P<minute>[0-9]{2})"
    r"(?::?(?P<second>[0-9]{2})(?:[.,][0-9]*)?)?)? *(?P<half>[AaPp][Mm])?"
    r" *(?:Z|UTC|GMT|(?P<sign>[+-])(?P<ahead>[0-9]{2}):?(?P<more>[0-9]{2})?)?\s*$"
)


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
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        values = whole_number(values)
    kind = values.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string())
    return pa.nulls(len(values), pa.string())


def item_id(values: pa.Array) -> pa.Array:
    """Text; 17.0, as tools write a whole number beside missing ones, is 17."""
    return pc.replace_substring_regex(text(values), r"^\s*([0-9]+)\.0\s*$", r"\1")


def without_empty(values: pa.Array) -> pa.Array:
    """The values with null in place of empty text, as a CSV file writes it."""
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return pc.if_else(pc.equal(pc.binary_length(values), 0), None, values)
    return values


def whole_number(values: pa.Array) -> pa.Array:
    """int64; true and false are 1 and 0."""
    if pa.types.is_decimal(values.type):
        values = wide_number(values)
    if pa.types.is_integer(values.type):
        if values.type != pa.uint64():
            return values.cast(pa.int64())
        most = pa.scalar(np.iinfo(np.int64).max, pa.uint64())
        return _where(pc.less_equal(values, most), values, pa.int64())
    if pa.types.is_floating(values.type):
        whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), 2.0**53))
        return _where(whole, values, pa.int64())
    written = text(values)
    for word, digit in (("true", "1"), ("false", "0")):
        written = pc.replace_substring_regex(written, rf"(?i)^\s*{word}\s*$", digit)
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

    Of numbers (seconds, or thousandths, millionths or billionths of them), 20240301, ISO 8601, and
    31/12/2024 23:59 or 12/31/2024 11:59 PM where some value tells which of them the column has.
    """
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        seconds = values.cast(pa.timestamp("us")).cast(pa.timestamp("s"), safe=False)
        return seconds.cast(pa.int64())
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = whole_number(pc.floor(wide_number(values)))
    elif is_number(values.type):
        numbers = whole_number(values)
    else:
        values = text(values)
        numbers = whole_number(pc.replace_substring_regex(values, SECONDS_WITH_FRACTION, r"\1"))
    seconds, left = numbers, lost(values, numbers)
    for limit, parts in PARTS:
        small = pc.greater_equal(pc.abs(numbers), limit)
        seconds = pc.if_else(small, pc.divide(numbers, parts), seconds)
    for first, end in DAYS:
        day = pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, end))
        left |= day.fill_null(False).to_numpy(zero_copy_only=False)
    if not left.any():
        return seconds
    others = _instants(text(values).filter(pa.array(left)))
    places = np.cumsum(left) - 1
    return pc.if_else(pa.array(left), others.take(pa.array(places.clip(0))), seconds)


def date_orders(values: pa.Array) -> set[str] | None:
    """What dates such as 31/12/2024 or 31.12.2024 have first: "day", "month", both or neither.

    None if no value is such a date.
    """
    if not (pa.types.is_binary(values.type) or pa.types.is_string(values.type)):
        return None
    dates = pc.extract_regex(values, DATE).drop_null()
    if not len(dates):
        return None
    first, mark, second = dates.flatten()[:3]
    dots = pc.equal(mark.cast(pa.string()), ".").to_numpy(zero_copy_only=False)
    orders = {"day": dots | (_whole(first) > 12), "month": _whole(second) > 12}
    return {order for order, tells in orders.items() if tells.any()}


def year_first(values: pa.Array, orders: set[str] | None) -> pa.Array:
    """31/12/2024 or 12/31/2024 as 2024-12-31, if exactly one order is known."""
    rewritten = {"day": r"\4-\3-\1\5", "month": r"\4-\1-\3\5"}
    if orders is None or len(orders) != 1:
        return values
    return pc.replace_substring_regex(values, DATE, rewritten[next(iter(orders))])


def _instants(written: pa.Array) -> pa.Array:
    """Seconds of ISO 8601 and of similar forms; fast where all are ISO 8601 and alike."""
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return time(written.cast(kind))
        except pa.ArrowInvalid:
            continue
    found = pc.extract_regex(year_first(written, date_orders(written)), INSTANT)
    names = [part.name for part in found.type]
    parts = dict(zip(names, found.flatten(), strict=True))
    date = pc.binary_join_element_wise(parts["year"], parts["month"], parts["day"], "-")
    midnight = pc.strptime(date, format="%Y-%m-%d", unit="s", error_is_null=True)
    day, hour, minute, second, ahead, more = (
        _whole(parts[name]) for name in ("day", "hour", "minute", "second", "ahead", "more")
    )
    hour += np.where(_is(parts["half"], "PM") & (hour < 12), 12, 0)
    hour -= np.where(_is(parts["half"], "AM") & (hour == 12), 12, 0)
    ahead = np.where(_is(parts["sign"], "-"), -1, 1) * (3_600 * ahead + 60 * more)
    seconds = pc.add(midnight.cast(pa.int64()), 3_600 * hour + 60 * minute + second - ahead)
    # strptime makes March 1 of February 30.
    right = _whole(pc.day(midnight)) == day
    right &= (hour < 24) & (minute < 60) & (second < 60)
    return pc.if_else(pa.array(right), seconds, None)


def _whole(digits: pa.Array) -> np.ndarray:
    """[M] int64; 0 for a missing number."""
    if not pa.types.is_integer(digits.type):
        digits = without_empty(digits).cast(pa.string())
    return digits.cast(pa.int64()).fill_null(0).to_numpy().copy()


def _is(texts: pa.Array, word: str) -> np.ndarray:
    same = pc.equal(pc.ascii_upper(texts), word).fill_null(False)
    return same.to_numpy(zero_copy_only=False)


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

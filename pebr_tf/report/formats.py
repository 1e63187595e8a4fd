"""Numbers as people read them, with two significant digits at least; None is an en dash."""

import math

DASH = "–"
_MINUS = "−"


def share(value: float | None) -> str:
    """Precision, recall or an error: `0.851`, `0.0191`, `0.00042`."""
    if value is None:
        return DASH
    small = abs(value) < 0.1 and two_digits(value) > 0
    return _without_negative_zero(f"{value:.{max(3 + small, two_digits(value))}f}")


def percent(value: float | None, digits: int | None = None) -> str:
    """A rate: `12.4%`, `0.42%`; with so many decimals if `digits` is given."""
    if value is None:
        return DASH
    decimals = max(1, two_digits(100 * value)) if digits is None else digits
    return _without_negative_zero(f"{100 * value:.{decimals}f}") + "%"


def count(value: float | None) -> str:
    """A count: `12`, `4,120`; a small one that is not whole has one decimal."""
    return f"{value:,.0f}" if value is not None and float(value).is_integer() else average(value)


def average(value: float | None) -> str:
    """An average of counts: `0.042`, `12.0`, `42.3`, `4,120`."""
    if value is None:
        return DASH
    digits = 0 if abs(value) >= 99.95 else max(1, two_digits(value))
    return _without_negative_zero(f"{value:,.{digits}f}")


def milliseconds(value: float | None) -> str:
    """A time: `0.84 ms`, `12.5 ms`, `1,204 ms`."""
    if value is None:
        return DASH
    digits = max(2, two_digits(value)) if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{digits}f} ms"


def wide_minus(text: str) -> str:
    """A formatted number whose minus is as wide as a plus, for columns of numbers."""
    return text.replace("-", _MINUS)


def change(text: str) -> str:
    """A formatted difference with its sign; without a sign if it rounds to zero."""
    if text.startswith("-") or not any(digit in text for digit in "123456789"):
        return wide_minus(text)
    return f"+{text}"


def compact(value: float) -> str:
    """A number beside an axis: `50`, `2k`, `1M`."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def two_digits(value: float) -> int:
    """Decimals that show two significant digits; 0 for what rounds to 0 in six decimals."""
    return 0 if abs(value) < 5e-7 else 1 - math.floor(math.log10(abs(value)))


def _without_negative_zero(text: str) -> str:
    return text if any(digit in text for digit in "123456789") else text.removeprefix("-")

"""Numbers as people read them; what is missing or no number is an en dash."""

from __future__ import annotations

import math
from numbers import Real

DASH = "–"
_MINUS = "−"


def finite(value: object) -> float | None:
    """`value` as a number; None for NaN, infinity, and what is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def share(value: object) -> str:
    """Precision, recall, an error: `0.851`."""
    number = finite(value)
    return DASH if number is None else _signless_zero(f"{number:.3f}")


def percent(value: object, digits: int = 1) -> str:
    """A rate: `0.4%`."""
    number = finite(value)
    return DASH if number is None else _signless_zero(f"{100 * number:.{digits}f}") + "%"


def count(value: object) -> str:
    """Things counted: `12`, `4,120`; one digit after the point if it is not whole and small."""
    number = finite(value)
    return f"{number:,.0f}" if number is not None and number.is_integer() else average(value)


def average(value: object) -> str:
    """An average of counts: `12.0`, `42.3`, `4,120`."""
    number = finite(value)
    if number is None:
        return DASH
    return _signless_zero(f"{number:,.{0 if abs(number) >= 99.95 else 1}f}")


def amount(value: object) -> str:
    """A count if it is whole, a share if it is not."""
    return count(value) if isinstance(value, int) else share(value)


def milliseconds(value: object) -> str:
    """A time: `0.84 ms`, `12.5 ms`, `1,204 ms`."""
    number = finite(value)
    if number is None:
        return DASH
    digits = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:,.{digits}f} ms"


def wide_minus(text: str) -> str:
    """A formatted number whose minus is as wide as a plus, for columns of numbers."""
    return text.replace("-", _MINUS)


def change(text: str) -> str:
    """A formatted difference with its sign; none if it rounds to nothing."""
    if text.startswith("-") or not any(digit in text for digit in "123456789"):
        return wide_minus(text)
    return f"+{text}"


def compact(value: float) -> str:
    """A number beside an axis: `50`, `2k`, `1M`."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _signless_zero(text: str) -> str:
    return text.removeprefix("-") if not any(digit in text for digit in "123456789") else text

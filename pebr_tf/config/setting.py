"""One key of the configuration: its default, its documentation, and the values that it accepts.

A section declares a key as `batch_size: int = setting(1024, "Pairs in a step", "[2, 1_048_576]")`.
The type check, the range check, the error text and the comment in a written file come from there.
"""

import dataclasses
import itertools
import re
import types
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from pebr_tf.config.error import ConfigError, shown

METADATA_KEY = "setting"
# Stands for a value that the size of the click log determines.
AUTO: Any = "auto"
_NOUNS = {int: "an integer", float: "a number"}
_PLURALS = {int: "integers", float: "numbers", str: "strings"}
# Attributes of `Setting` for lists: the words of the error, and the check.
_LIST_TERMS: dict[str, tuple[str, Callable[[tuple[Any, ...]], bool]]] = {
    "filled": ("at least one", lambda entries: len(entries) > 0),
    "distinct": ("no repeats", lambda entries: len(set(entries)) == len(entries)),
    "increasing": (
        "increasing",
        lambda entries: all(low < high for low, high in itertools.pairwise(entries)),
    ),
}


class Interval:
    """The numbers between two ends, such as `[2, 64]` or `(0, 1]`; a round bracket excludes one."""

    def __init__(self, text: str) -> None:
        low, high = text[1:-1].split(", ")
        self.low, self.high = _number(low), _number(high)
        self.has_low, self.has_high = text[0] == "[", text[-1] == "]"

    def __contains__(self, number: float) -> bool:
        # NaN compares false, so it is in no interval.
        above = self.low <= number if self.has_low else self.low < number
        return above and (number <= self.high if self.has_high else number < self.high)

    def __str__(self) -> str:
        if self.has_low and self.has_high:
            return f"from {self.low:.15g} to {self.high:.15g}"
        low, high = "at least" if self.has_low else "above", "at most" if self.has_high else "below"
        return f"{low} {self.low:.15g} and {high} {self.high:.15g}"


@dataclasses.dataclass(frozen=True)
class Setting:
    """The documentation and the constraints of one key.

    Attributes:
      doc: One line, without a final stop.
      bounds: The accepted numbers, or the accepted entries of a list of numbers.
      pattern: Regular expression that a whole string must match.
      form: Describes such a string in the error text.
      filled: Whether a list needs an entry.
      distinct: Whether a list rejects repeats.
      increasing: Whether each number of a list must exceed the one before.
      automatic: Whether AUTO is accepted, too. The type of the key is that of the value which
        `pebr_tf.data.automatic.resolve` puts in its place.
    """

    doc: str
    bounds: Interval | None = None
    pattern: str | None = None
    form: str = "a non-empty string"
    filled: bool = False
    distinct: bool = False
    increasing: bool = False
    automatic: bool = False


def setting(default: Any, doc: str, bounds: str | None = None, **constraints: Any) -> Any:
    """A dataclass field that is a key of the configuration.

    `bounds` is an `Interval` as text; `constraints` are the other attributes of `Setting`.
    """
    rule = Setting(doc, Interval(bounds) if bounds else None, **constraints)
    return dataclasses.field(default=default, metadata={METADATA_KEY: rule})


def requirement(hint: Any, rule: Setting) -> str:
    """What an error text says after "must be" about a value of type `hint` under `rule`."""
    kind, nullable = split_null(hint)
    if kind is bool:
        text = "true or false"
    elif get_origin(kind) is Literal:
        text = "one of " + ", ".join(get_args(kind))
    elif get_origin(kind) is tuple:
        text = f"a list of {_PLURALS[get_args(kind)[0]]} {rule.bounds or ''}".rstrip()
        text += _list_terms(rule)
    elif kind is str:
        text = rule.form
    else:
        text = f"{_NOUNS[kind]} {rule.bounds}"
    return f"null or {text}" if nullable else text


def remark(hint: Any, rule: Setting) -> str:
    """The constraint as the comment beside a value shows it; empty if the type says enough."""
    kind, _ = split_null(hint)
    if get_origin(kind) is Literal:
        return " | ".join(get_args(kind))
    if kind is bool and rule.automatic:
        return "auto | true | false"
    automatic = "auto, or " if rule.automatic else ""
    limits = str(rule.bounds).removeprefix("from ") + _list_terms(rule) if rule.bounds else ""
    return automatic + limits


def accept(hint: Any, rule: Setting, value: object) -> Any:
    """`value` as the type `hint`; an integer may stand for a number, a list for a tuple.

    `hint` is bool, int, float, str, Literal of strings, a tuple of int, float or str, or one of
    them with None.
    """
    kind, nullable = split_null(hint)
    if value is None and nullable:
        return None
    if rule.automatic and value == AUTO:
        return AUTO
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        entries = []
        for position, entry in enumerate(value):
            try:
                entries.append(accept(get_args(kind)[0], rule, entry))
            except ConfigError as error:
                raise error.inside(f"[{position}]") from None
        value = tuple(entries)
    if not _fits(kind, rule, value):
        raise ConfigError("", f"be {requirement(hint, rule)}", shown(value))
    # The sum makes a float of an integer and 0.0 of -0.0, so that equal settings print alike.
    return value + 0.0 if kind is float else value  # type: ignore[operator]


def split_null(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether None is accepted."""
    if not isinstance(hint, types.UnionType):
        return hint, False
    (kind,) = (member for member in get_args(hint) if member is not types.NoneType)
    return kind, True


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def _fits(kind: Any, rule: Setting, value: object) -> bool:
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(
            fits(value) for name, (_, fits) in _LIST_TERMS.items() if getattr(rule, name)
        )
    if kind is bool:
        return isinstance(value, bool)
    if kind in (int, float):
        numbers = int if kind is int else (int, float)
        # To Python a bool is an int; to the writer of a file `true` is not a number.
        is_number = isinstance(value, numbers) and not isinstance(value, bool)
        return is_number and (rule.bounds is None or value in rule.bounds)  # type: ignore[operator]
    if not isinstance(value, str):
        return False
    if kind is not str:
        return value in get_args(kind)
    return bool(value.strip()) and (rule.pattern is None or bool(re.fullmatch(rule.pattern, value)))


def _list_terms(rule: Setting) -> str:
    return "".join(f", {term}" for name, (term, _) in _LIST_TERMS.items() if getattr(rule, name))

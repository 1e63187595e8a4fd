"""What one key of the configuration is: its default, its documentation, and what it accepts.

A section declares a key as `batch_size: int = setting(1024, "Pairs in a step.", minimum=2, ...)`.
Default, type check, range check, error text and the comment in a written file all come from there.
"""

import dataclasses
import itertools
import re
import types
from typing import Any, Literal, get_args, get_origin

from pebr_tf.config.error import ConfigError, shown

METADATA_KEY = "setting"
_NOUNS = {int: "an integer", float: "a number"}
_PLURALS = {int: "integers", float: "numbers", str: "strings"}


@dataclasses.dataclass(frozen=True)
class Setting:
    """The documentation and the constraint of one key.

    Attributes:
      doc: One line, without a final stop.
      minimum: Least number accepted.
      maximum: Greatest number accepted.
      above: Bound that a number must exceed.
      below: Bound that a number must stay under.
      pattern: Regular expression that a whole string must match.
      form: What such a string is, for the error text.
      filled: Whether a list needs an entry.
      distinct: Whether a list refuses repeats.
      increasing: Whether each number of a list must exceed the one before.
    """

    doc: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    pattern: str | None = None
    form: str = "a non-empty string"
    filled: bool = False
    distinct: bool = False
    increasing: bool = False

    def span(self) -> str:
        """The range in words: `from 2 to 64`, `above 0 and below 1`; empty without bounds."""
        if self.minimum is not None and self.maximum is not None:
            return f"from {self.minimum:.15g} to {self.maximum:.15g}"
        bounds = {
            "above": self.above,
            "at least": self.minimum,
            "below": self.below,
            "at most": self.maximum,
        }
        return " and ".join(
            f"{word} {bound:.15g}" for word, bound in bounds.items() if bound is not None
        )

    def includes(self, number: float) -> bool:
        """Whether `number` is in range; NaN is in none that has a bound."""
        return (
            (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )


def setting(default: Any, doc: str, **constraint: Any) -> Any:
    """A dataclass field that is a key of the configuration; `constraint` as in `Setting`."""
    return dataclasses.field(default=default, metadata={METADATA_KEY: Setting(doc, **constraint)})


def requirement(hint: Any, rule: Setting) -> str:
    """What a value of type `hint` under `rule` must be, as an error says it after "must be"."""
    kind, nullable = _split_null(hint)
    if kind is bool:
        text = "true or false"
    elif get_origin(kind) is Literal:
        text = "one of " + ", ".join(get_args(kind))
    elif get_origin(kind) is tuple:
        text = f"a list of {_PLURALS[get_args(kind)[0]]} {rule.span()}".rstrip() + _list_terms(rule)
    elif kind is str:
        text = rule.form
    else:
        text = f"{_NOUNS[kind]} {rule.span()}"
    return f"null or {text}" if nullable else text


def remark(hint: Any, rule: Setting) -> str:
    """The constraint as a comment shows it beside a value whose type is plain to see."""
    kind, _ = _split_null(hint)
    if get_origin(kind) is Literal:
        return " | ".join(get_args(kind))
    return rule.span().removeprefix("from ") + _list_terms(rule) if rule.span() else ""


def accept(hint: Any, rule: Setting, value: object) -> Any:
    """`value` as the type `hint`: an integer may stand for a number, a list for a tuple.

    Args:
      hint: bool, int, float, str, Literal of strings, a tuple of int, float or str, or `X | None`.
      rule: The constraint.
      value: As read from YAML or given by a caller.

    Raises:
      ConfigError: Another type, or out of range; its key is empty or the position in a list.
    """
    kind, nullable = _split_null(hint)
    if value is None and nullable:
        return None
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        value = tuple(_accept_entry(get_args(kind)[0], rule, i, v) for i, v in enumerate(value))
    if not _fits(kind, rule, value):
        raise ConfigError("", f"be {requirement(hint, rule)}", shown(value))
    # The sum makes a float of an integer and 0.0 of -0.0, so that equal settings print alike.
    return value + 0.0 if kind is float else value  # type: ignore[operator]


def _split_null(hint: Any) -> tuple[Any, bool]:
    if not isinstance(hint, types.UnionType):
        return hint, False
    (kind,) = (member for member in get_args(hint) if member is not types.NoneType)
    return kind, True


def _fits(kind: Any, rule: Setting, value: object) -> bool:
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and _entries_fit(rule, value)
    if kind is bool:
        return isinstance(value, bool)
    if kind in (int, float):
        numbers = int if kind is int else (int, float)
        # To Python a bool is an int; to the writer of a file `true` is not a number.
        return isinstance(value, numbers) and not isinstance(value, bool) and rule.includes(value)
    if not isinstance(value, str):
        return False
    if kind is not str:
        return value in get_args(kind)
    return bool(value.strip()) and (rule.pattern is None or bool(re.fullmatch(rule.pattern, value)))


def _accept_entry(kind: Any, rule: Setting, position: int, value: object) -> Any:
    try:
        return accept(kind, rule, value)
    except ConfigError as error:
        raise error.inside(f"[{position}]") from None


def _entries_fit(rule: Setting, entries: tuple[Any, ...]) -> bool:
    return (
        (not rule.filled or len(entries) > 0)
        and (not rule.distinct or len(set(entries)) == len(entries))
        and (not rule.increasing or all(a < b for a, b in itertools.pairwise(entries)))
    )


def _list_terms(rule: Setting) -> str:
    terms = {
        "at least one": rule.filled,
        "no repeats": rule.distinct,
        "increasing": rule.increasing,
    }
    return "".join(f", {term}" for term, wanted in terms.items() if wanted)

"""Checks times in unix-cron format, so that a mistake is found before anything is sent."""

from __future__ import annotations

import re
import zoneinfo

from pebr_tf.errors import UserError

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
# Field, least and greatest number, words for the numbers from the least on. Sunday is 0 and 7.
_FIELDS: tuple[tuple[str, int, int, list[str]], ...] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 7, _WEEKDAYS),
)


def read_cron(text: str, time_zone: str | None = None) -> str:
    """A time as Vertex AI takes it: names in capitals, single blanks, the time zone in front.

    `text` is minute, hour, day, month and weekday, such as `0 3 * * MON-FRI`; the time zone is such
    as Europe/Berlin, by default UTC.

    Raises:
      UserError: The time or the time zone is not valid.
    """
    fields = text.upper().split()
    try:
        if len(fields) != len(_FIELDS):
            raise ValueError("1 field" if len(fields) == 1 else f"{len(fields)} fields")
        for field, given in zip(_FIELDS, fields, strict=True):
            for part in given.split(","):
                _check_part(part, *field)
    except ValueError as error:
        raise UserError(
            "--cron must be five fields, minute hour day month weekday. "
            f"Received: {text!r}: {error}."
        ) from None
    if time_zone is None:
        return " ".join(fields)
    if time_zone not in zoneinfo.available_timezones():
        raise UserError(
            "--time-zone must be a name of the IANA database, such as Europe/Berlin. "
            f"Received: {time_zone!r}."
        )
    return " ".join((f"TZ={time_zone}", *fields))


def _check_part(part: str, name: str, least: int, most: int, words: list[str]) -> None:
    """Raises a ValueError unless `part` is `*`, a value or a range, perhaps with a step."""

    def number(text: str) -> int:
        if text in words:
            return words.index(text) + least
        if not re.fullmatch("[0-9]+", text):
            known = f", nor one of {', '.join(words)}" if words else ""
            raise ValueError(f"{name} {text!r} is no number{known}")
        if not least <= int(text) <= most:
            raise ValueError(f"{name} {int(text)} is not within {least} to {most}")
        return int(text)

    values, slash, step = part.partition("/")
    first, dash, last = values.partition("-")
    if values != "*":
        begin = number(first)
        if dash and number(last) < begin:
            raise ValueError(f"{name} {values} ends before it begins")
    if slash and not re.fullmatch("[0-9]*[1-9][0-9]*", step):
        raise ValueError(f"{name} {part} has a step that is no number above 0")
    if slash and values != "*" and not dash:
        raise ValueError(f"{name} {part} has a step without a range")

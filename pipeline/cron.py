"""Times in unix-cron, read and refused here: no library of the locked set parses them."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass

from pebr_tf.errors import UserError

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True)
class _Field:
    """One of the five.

    Attributes:
      name: As an error calls it.
      least: Its least number.
      most: Its greatest number.
      names: Words for numbers, from `least` on.
    """

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()

    def check(self, text: str) -> None:
        """Raises a ValueError that says what is wrong with a list of values and ranges."""
        for part in text.split(","):
            values, slash, step = part.partition("/")
            first, dash, last = values.partition("-")
            if values != "*":
                begin = self._number(first)
                if dash and self._number(last) < begin:
                    raise ValueError(f"{self.name} {values} ends before it begins")
            if not slash:
                continue
            if not re.fullmatch("[0-9]*[1-9][0-9]*", step):
                raise ValueError(f"{self.name} {part} has a step that is no number above 0")
            if values != "*" and not dash:
                raise ValueError(f"{self.name} {part} has a step without a range")

    def _number(self, text: str) -> int:
        if text in self.names:
            return self.names.index(text) + self.least
        if not re.fullmatch("[0-9]+", text):
            known = f", nor one of {', '.join(self.names)}" if self.names else ""
            raise ValueError(f"{self.name} {text!r} is no number{known}")
        number = int(text)
        if not self.least <= number <= self.most:
            raise ValueError(f"{self.name} {number} is not within {self.least} to {self.most}")
        return number


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    # 0 and 7 are both Sunday.
    _Field("weekday", 0, 7, _WEEKDAYS),
)


def read_cron(text: str, time_zone: str | None = None) -> str:
    """A time as Vertex AI takes it: names in capitals, single blanks, the time zone in front.

    Args:
      text: Minute, hour, day, month and weekday, such as `0 3 * * MON-FRI`.
      time_zone: Such as Europe/Berlin; None: UTC.

    Raises:
      UserError: No such time, or no such time zone.
    """
    fields = text.upper().split()
    try:
        if len(fields) != len(_FIELDS):
            raise ValueError("1 field" if len(fields) == 1 else f"{len(fields)} fields")
        for field, given in zip(_FIELDS, fields, strict=True):
            field.check(given)
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

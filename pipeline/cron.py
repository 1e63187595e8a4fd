"""Times in unix-cron format: checked before anything is sent, in the form of each target."""

import datetime
import re
import zoneinfo
from dataclasses import dataclass

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


# The 29th of February may be eight years away.
_LONGEST_WAIT_DAYS = 8 * 366


@dataclass(frozen=True)
class Cron:
    """The times of a schedule.

    Attributes:
      fields: Minute, hour, day, month and weekday, with names in capitals.
      numbers: The numbers that each field stands for; Sunday is 0.
      time_zone: A name of the IANA database; None: UTC.
    """

    fields: tuple[str, ...]
    numbers: tuple[frozenset[int], ...]
    time_zone: str | None = None

    def for_vertex(self) -> str:
        """The five fields, after the time zone if there is one."""
        zone = () if self.time_zone is None else (f"TZ={self.time_zone}",)
        return " ".join((*zone, *self.fields))

    def for_kubeflow(self) -> str:
        """Six fields, the seconds first. With five, Kubeflow would take the minutes for seconds.

        Kubeflow knows Sunday as 0 only.
        """
        expanded = (
            ",".join(
                part if _is_open(part) else ",".join(map(str, sorted(_numbers(part, *field))))
                for part in given.split(",")
            )
            for given, field in zip(self.fields, _FIELDS, strict=True)
        )
        return " ".join(("0", *expanded))

    def next_times(self, after: datetime.datetime, count: int) -> list[datetime.datetime]:
        """The next times after a time, in the schedule's time zone; fewer if there are no more."""
        zone = zoneinfo.ZoneInfo(self.time_zone or "UTC")
        minutes, hours, _, _, _ = map(sorted, self.numbers)
        today = after.astimezone(zone).date()
        days = (today + datetime.timedelta(number) for number in range(_LONGEST_WAIT_DAYS))
        found: list[datetime.datetime] = []
        for day in filter(self._includes, days):
            times = (
                datetime.time(hour, minute, tzinfo=zone) for hour in hours for minute in minutes
            )
            moments = (datetime.datetime.combine(day, time) for time in times)
            found += [moment for moment in moments if moment > after and _exists(moment)]
            if len(found) >= count:
                break
        return found[:count]

    def _includes(self, day: datetime.date) -> bool:
        _, _, days, months, weekdays = self.numbers
        matches = (day.day in days, day.isoweekday() % 7 in weekdays)
        # As in every cron: a day must match both fields, or one of them if both restrict it.
        both = _is_open(self.fields[2]) or _is_open(self.fields[4])
        return day.month in months and (all(matches) if both else any(matches))


def read_cron(text: str, time_zone: str | None = None) -> Cron:
    """The times of `text`: minute, hour, day, month and weekday, such as `0 3 * * MON-FRI`.

    The time zone is such as Europe/Berlin, by default UTC.

    Raises:
      UserError: The time or the time zone is not valid.
    """
    fields = tuple(text.upper().split())
    try:
        if len(fields) != len(_FIELDS):
            raise ValueError("1 field" if len(fields) == 1 else f"{len(fields)} fields")
        numbers = [
            frozenset().union(*(_numbers(part, *field) for part in given.split(",")))
            for field, given in zip(_FIELDS, fields, strict=True)
        ]
    except ValueError as error:
        raise UserError(
            "--cron must be five fields, minute hour day month weekday. "
            f"Received: {text!r}: {error}."
        ) from None
    if time_zone is not None and time_zone not in zoneinfo.available_timezones():
        raise UserError(
            "--time-zone must be a name of the IANA database, such as Europe/Berlin. "
            f"Received: {time_zone!r}."
        )
    return Cron(fields, tuple(numbers), time_zone)


def _exists(moment: datetime.datetime) -> bool:
    """Whether the clock shows this time: it skips some when it is put forward."""
    return moment.astimezone(datetime.timezone.utc).astimezone(moment.tzinfo) == moment


def _is_open(field: str) -> bool:
    return "*" in field


def _numbers(part: str, name: str, least: int, most: int, words: list[str]) -> set[int]:
    """The numbers of `*`, a value or a range, perhaps with a step; Sunday is 0.

    Raises:
      ValueError: It is none of these.
    """

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
    begin, end = least, most
    if values != "*":
        begin = end = number(first)
        if dash:
            end = number(last)
        if end < begin:
            raise ValueError(f"{name} {values} ends before it begins")
    if slash and not re.fullmatch("[0-9]*[1-9][0-9]*", step):
        raise ValueError(f"{name} {part} has a step that is no number above 0")
    if slash and values != "*" and not dash:
        raise ValueError(f"{name} {part} has a step without a range")
    numbers = range(begin, end + 1, int(step) if slash else 1)
    return {number % 7 for number in numbers} if name == "weekday" else set(numbers)

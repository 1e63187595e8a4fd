"""Times in unix-cron: what is taken, in which form, and the one sentence of what is not."""

import datetime

import pytest

from pebr_tf.errors import UserError
from pipeline.cron import read_cron

START = "--cron must be five fields, minute hour day month weekday. Received: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  0   3\t* * * ", "0 3 * * *"),
        ("59 23 31 12 7", "59 23 31 12 7"),
        ("0 0 1 1 0", "0 0 1 1 0"),
        ("*/15 8-18/2 1,15 * mon-fri", "*/15 8-18/2 1,15 * MON-FRI"),
        ("0 0 1 jan,JUL-sep Sun", "0 0 1 JAN,JUL-SEP SUN"),
        ("0 0 1 dec-12 6-sat", "0 0 1 DEC-12 6-SAT"),
        ("5-5 00 01 * *", "5-5 00 01 * *"),
        ("*,30 * * * *", "*,30 * * * *"),
    ],
)
def test_times_that_are_taken(text, expected):
    assert read_cron(text).for_vertex() == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "0 fields"),
        ("@daily", "1 field"),
        ("TZ=Europe/Berlin 0 3 * * *", "6 fields"),
        ("60 3 * * *", "minute 60 is not within 0 to 59"),
        ("0 3 0 * *", "day 0 is not within 1 to 31"),
        ("0 3 32 * *", "day 32 is not within 1 to 31"),
        ("0 3 * 13 *", "month 13 is not within 1 to 12"),
        ("0 3 * * 8", "weekday 8 is not within 0 to 7"),
        ("0 1-24 * * *", "hour 24 is not within 0 to 23"),
        ("-1 3 * * *", "minute '' is no number"),
        ("1.5 3 * * *", "minute '1.5' is no number"),
        ("² 3 * * *", "minute '²' is no number"),
        ("0 3 * * JAN", "weekday 'JAN' is no number, nor one of SUN, MON, TUE, WED, THU, FRI, SAT"),
        (
            "0 3 * JUNE *",
            "month 'JUNE' is no number, nor one of JAN, FEB, MAR, APR, MAY, JUN, JUL, AUG, SEP, "
            "OCT, NOV, DEC",
        ),
        ("0 5-1 * * *", "hour 5-1 ends before it begins"),
        ("0 3 * 2-JAN *", "month 2-JAN ends before it begins"),
        ("*/0 3 * * *", "minute */0 has a step that is no number above 0"),
        ("*/ 3 * * *", "minute */ has a step that is no number above 0"),
        ("5/10 3 * * *", "minute 5/10 has a step without a range"),
        ("*-5 3 * * *", "minute '*' is no number"),
    ],
)
def test_times_that_are_not(text, reason):
    with pytest.raises(UserError) as caught:
        read_cron(text)
    assert str(caught.value) == f"{START}{text!r}: {reason}."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 3 * * *", "0 0 3 * * *"),
        ("*/15 8-18/2 1,15 * mon-fri", "0 */15 8,10,12,14,16,18 1,15 * 1,2,3,4,5"),
        ("0 0 * jan 5-7", "0 0 0 * 1 0,5,6"),
        ("*,30 * * * *", "0 *,30 * * * *"),
        ("0 0 * * */2,7", "0 0 0 * * */2,0"),
        ("0 0 * * */3,fri-7", "0 0 0 * * */3,0,5,6"),
    ],
)
def test_kubeflow_has_seconds_first_and_sunday_as_0(text, expected):
    assert read_cron(text).for_kubeflow() == expected


@pytest.mark.parametrize(
    ("text", "time_zone", "expected"),
    [
        # 2026-11-18 is a Wednesday.
        ("0 3 * * *", None, ["2026-11-19 03:00", "2026-11-20 03:00", "2026-11-21 03:00"]),
        ("*/20 12 * * *", None, ["2026-11-18 12:20", "2026-11-18 12:40", "2026-11-19 12:00"]),
        ("0 0 13 * fri", None, ["2026-11-20 00:00", "2026-11-27 00:00", "2026-12-04 00:00"]),
        ("0 0 */31 * fri", None, ["2027-01-01 00:00", "2027-10-01 00:00", "2028-09-01 00:00"]),
        ("30 2 29 2 *", None, ["2028-02-29 02:30", "2032-02-29 02:30"]),
        ("0 0 30 2 *", None, []),
        ("0 13 * * 7", "Europe/Berlin", ["2026-11-22 12:00", "2026-11-29 12:00"]),
        ("5 13 18 11 *", "Europe/Berlin", ["2026-11-18 12:05", "2027-11-18 12:05"]),
        # On 2027-03-28, the clock goes from 02:00 to 03:00.
        ("30 2,3 28 3 *", "Europe/Berlin", ["2027-03-28 01:30", "2028-03-28 00:30"]),
    ],
)
def test_the_next_times(text, time_zone, expected):
    noon = datetime.datetime(2026, 11, 18, 12, tzinfo=datetime.timezone.utc)
    times = read_cron(text, time_zone).next_times(noon, 3)
    found = [f"{time.astimezone(datetime.timezone.utc):%Y-%m-%d %H:%M}" for time in times]
    assert found[: len(expected)] == expected
    assert len(found) == 3 or found == expected


@pytest.mark.parametrize("name", ["Mars", "Europe", "europe/berlin", "../passwd", ""])
def test_time_zones_that_are_none(name):
    with pytest.raises(UserError) as caught:
        read_cron("0 3 * * *", name)
    assert str(caught.value) == (
        "--time-zone must be a name of the IANA database, such as Europe/Berlin. "
        f"Received: {name!r}."
    )

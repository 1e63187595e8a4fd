"""Rows of click logs and catalogues: what is kept, and the first reason against what is not."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from pebr_tf.config import Data
from pebr_tf.data.click_log import (
    CLOCK_SLACK,
    check_clicks,
    check_clicks_and_items,
    check_items,
    item_columns,
)
from pebr_tf.data.tables import Batch, Rejected

NOW = 1_800_000_000


def batch_of(**columns):
    """A batch of these columns whose rows are numbered from 11."""
    columns = {
        name: values if isinstance(values, pa.Array) else pa.array(values)
        for name, values in columns.items()
    }
    count = len(next(iter(columns.values())))
    return Batch(
        pa.RecordBatch.from_pydict(columns), np.arange(11, 11 + count), Rejected.of([3], "broken")
    )


def reasons(batch):
    return dict(zip(batch.rejected.rows.tolist(), batch.rejected.reasons.tolist(), strict=True))


def checked(**columns):
    """The good rows of two clicks with these columns, and the number of good and rejected rows."""
    batch = batch_of(**{"query": ["a", "b"], "item_id": ["i", "j"], **columns})
    kept = check_clicks(batch, Data(), NOW)
    return kept, len(kept) + len(kept.rejected)


def test_good_rows_come_out_typed_and_trimmed():
    batch = batch_of(
        query=[b" red shoe ", "手机".encode()],
        item_id=[b"7", b"x"],
        clicks=[b" 3", b""],
        timestamp=[b"1700000000", b"2023-11-14T22:13:20Z"],
    )
    kept = check_clicks(batch, Data(), NOW)
    assert kept.columns.to_pydict() == {
        "query": ["red shoe", "手机"],
        "item_id": ["7", "x"],
        "clicks": [3, 1],
        "timestamp": [1_700_000_000, 1_700_000_000],
    }
    assert kept.rows.tolist() == [11, 12]
    assert reasons(kept) == {3: "broken"}


def test_every_reason_and_the_first_of_several():
    rows = {
        "no query": (b" ", b"a", b"1", b"\xff"),
        "query is not UTF-8 text": (b"\xff", b"a", b"1", b"0"),
        "no item_id": (b"q", b"", b"x", b"0"),
        "item_id is not UTF-8 text": (b"q", b"\xc3\x28", b"1", b"0"),
        "clicks is not a whole number": (b"q", b"a", b"1.5", b"never"),
        "negative clicks": (b"q", b"a", b"-1", b"0"),
        "more than 1,000,000,000 clicks": (b"q", b"a", b"9" * 18, b"0"),
        "timestamp is not a time": (b"q", b"a", b"1", b"yesterday"),
        "time in the future": (b"q", b"a", b"1", str(NOW + CLOCK_SLACK + 1).encode()),
        "item not in the catalogue": (b"q", b"unknown", b"1", b"0"),
        "kept": (b"q", b"a", b"0", str(NOW + CLOCK_SLACK).encode()),
    }
    names = ("query", "item_id", "clicks", "timestamp")
    columns = dict(zip(names, map(list, zip(*rows.values(), strict=True)), strict=True))
    kept = check_clicks(batch_of(**columns), Data(), NOW, known=pa.array(["a"]))
    assert kept.columns.to_pydict() == {
        "query": ["q"],
        "item_id": ["a"],
        "clicks": [0],
        "timestamp": [NOW + CLOCK_SLACK],
    }
    expected = {row: reason for row, reason in enumerate(rows, 11) if reason != "kept"}
    assert reasons(kept) == {3: "broken", **expected}


def test_a_log_of_two_columns_counts_one_click_a_row():
    kept = check_clicks(batch_of(query=["a", "b"], item_id=[1, 2]), Data(), NOW)
    assert kept.columns.column("clicks").to_pylist() == [1, 1]
    assert kept.columns.column("timestamp").to_pylist() == [0, 0]
    assert kept.columns.column("item_id").to_pylist() == ["1", "2"]


def test_columns_are_found_by_the_names_in_the_config():
    """Even if the log calls its items `query`."""
    data = Data(query_column="q", item_column="query", clicks_column=None, timestamp_column="t")
    batch = batch_of(q=["a"], query=["i"], clicks=["many"], t=[5])
    assert check_clicks(batch, data, NOW).columns.to_pydict() == {
        "query": ["a"],
        "item_id": ["i"],
        "clicks": [1],
        "timestamp": [5],
    }


TIME = datetime.datetime(2023, 11, 14, 22, 13, 20)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1_700_000_000, None]),
        pa.array([1_700_000_000_000, None]),
        pa.array([1.7e9, None]),
        pa.array([TIME, None], pa.timestamp("us")),
        pa.array([TIME, None], pa.timestamp("ns", tz="UTC")),
        pa.array(["2023-11-14 22:13:20", None]),
        pa.array(["2023-11-15T00:13:20+02:00", None]),
        pa.array([b"1700000000.0", b""]),
        pa.array(["2023-11-14 22:13:20.999999", None]),
        pa.array(["2023-11-14T22:13:20.5Z", ""]),
        pa.array(["2023-11-14 22:13:20 UTC", None]),
        pa.array(["2023-11-14 22:13:20.123456 UTC", None]),
        pa.array(["2023-11-14T17:43:20.123456789-0430", None]),
        pa.array(["20231114221320", None]),
        pa.array([20231114221320, None]),
        pa.array(["14.11.2023, 22:13:20", None]),
        pa.array(["11/14/2023 10:13:20 PM", None]),
        pa.array(["1700000000.123", None]),
        pa.array([1_700_000_000.5, None]),
        pa.array([decimal.Decimal("1700000000.5"), None]),
        pa.array(["1700000000123456", None]),
        pa.array(["1700000000123456789", None]),
        pa.array([1_700_000_000_123_456_789, None]),
    ],
)
def test_times_in_all_their_forms(times):
    kept, _ = checked(timestamp=times)
    assert kept.columns.column("timestamp").to_pylist() == [1_700_000_000, 0]


def test_times_of_several_forms_in_one_batch():
    times = ["0", "1970-01-01", "1969-12-31T23:59:59.5Z", "1970-01-01T01:00:00+01:00", "1970-13-01"]
    batch = batch_of(query=["q"] * 5, item_id=["i"] * 5, timestamp=times)
    kept = check_clicks(batch, Data(), NOW)
    assert kept.columns.column("timestamp").to_pylist() == [0, 0, -1, 0]
    assert reasons(kept) == {3: "broken", 15: "timestamp is not a time"}


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("timestamp", pa.array(["20240229", "2024-02-29 00:15 AM"]), [1709164800, 1709165700]),
        ("timestamp", pa.array(["2024-02-30 10:00", "2024-02-29 24:00"]), []),
        ("timestamp", pa.array(["2024-02-29 23:60", "2024-02-29 23:59:60"]), []),
        ("clicks", pa.array([decimal.Decimal("3.00"), decimal.Decimal("2.50")]), [3]),
        ("item_id", pa.array([decimal.Decimal("3.00"), decimal.Decimal("4")]), ["3", "4"]),
        ("clicks", pa.array(["true", " False"]), [1, 0]),
        ("clicks", pa.array([True, False]), [1, 0]),
        # A date is its midnight.
        ("timestamp", pa.array([datetime.date(1970, 1, 2)] * 2), [86_400, 86_400]),
        ("item_id", pa.array([2, 3], pa.int32()), ["2", "3"]),
        ("item_id", pa.array([2**63, 3], pa.uint64()), [str(2**63), "3"]),
        # A fraction or a list is no id.
        ("item_id", pa.array([2.0, 2.5]), ["2"]),
        ("item_id", pa.array([["x"], ["y"]]), []),
        ("item_id", pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
        ("item_id", pa.array(["x", "y"], pa.large_string()), ["x", "y"]),
        ("clicks", pa.array([10**9, 2**63], pa.uint64()), [10**9]),
        ("clicks", pa.array([10**9 + 1, 2**63 - 1]), []),
        # As a tool writes whole numbers beside missing ones; 1.50 is another id than 1.5.
        ("item_id", pa.array(["123.0", "1.50"]), ["123", "1.50"]),
        ("clicks", pa.array([float("nan"), 4.0]), [4]),
        ("clicks", pa.array([float("inf"), 4.5]), []),
        ("clicks", pa.array(["+7", "3.00"]), [7, 3]),
        ("clicks", pa.array(["1e3", "0x10"]), []),
        ("clicks", pa.array(["1" * 10, "9" * 19]), []),
    ],
)
def test_values_of_other_types(column, values, expected):
    kept, rows = checked(**{column: values})
    assert kept.columns.column(column).to_pylist() == expected
    assert rows == 3


def test_items_keep_their_texts():
    batch = batch_of(item_id=["1", " ", "3"], title=["a", "b", None], brand=[b"x", b"y", b"\xff"])
    kept = check_items(batch, "item_id", ["title", "brand"])
    assert kept.columns.to_pydict() == {"title": ["a"], "brand": ["x"], "item_id": ["1"]}
    assert reasons(kept) == {3: "broken", 12: "no item_id", 13: "brand is not UTF-8 text"}
    kept = check_items(batch, "item_id", ["title"])
    assert kept.columns.column("title").to_pylist() == ["a", ""]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([b"1.5", b" +2 ", b"-.5e1", b""]), [1.5, 2, -5, 0]),
        (pa.array(["1e39", "nan", "1_0", "x"]), []),
        (pa.array([1.5, float("nan"), float("inf"), None]), [1.5, 0, 0]),
        (pa.array([decimal.Decimal("1.25"), None, None, None]), [1.25, 0, 0, 0]),
        (pa.array([1, 2, 3, None]), [1, 2, 3, 0]),
        (pa.array([True, False, True, None]), [1, 0, 1, 0]),
        (pa.array([[1.0], [2.0], None, None]), [0, 0]),
    ],
)
def test_numbers_of_items(values, expected):
    batch = batch_of(item_id=["a", "b", "c", "d"], price=values)
    kept = check_items(batch, "item_id", [], ["price"])
    assert kept.columns.column("price").type == pa.float32()
    assert kept.columns.column("price").to_pylist() == expected
    assert set(kept.rejected.reasons[1:]) <= {"price is not a number"}
    assert len(kept) + len(kept.rejected) == 5


ITEMS = pa.table({"item_id": ["b", "a"], "title": ["B", "A"], "price": pa.array([2.0, 1.0])})


def test_columns_of_items_by_their_ids():
    found = item_columns(pa.array(["a", "?", "b", ""]), ITEMS)
    assert {name: column.to_pylist() for name, column in found.items()} == {
        "title": ["A", "", "B", ""],
        "price": [1.0, 0.0, 2.0, 0.0],
    }
    empty = item_columns(pa.array(["a"]), ITEMS.slice(0, 0))
    assert empty["title"].to_pylist() == [""]


def test_rows_that_are_a_click_and_an_item():
    """Rejected for either, in the order of the rows."""
    batch = batch_of(
        query=["x", "", "y", "z"],
        item_id=["a", "b", "c", "d"],
        title=[b"A", b"\xff", b"\xff", b"D"],
        price=["1", "1", "1", "much"],
    )
    clicks, items = check_clicks_and_items(batch, Data(), NOW, ["title"], ["price"])
    assert clicks.columns.column("query").to_pylist() == ["x"]
    assert items.columns.to_pydict() == {"title": ["A"], "price": [1.0], "item_id": ["a"]}
    assert clicks.rows.tolist() == items.rows.tolist() == [11]
    expected = {
        3: "broken",
        12: "no query",
        13: "title is not UTF-8 text",
        14: "price is not a number",
    }
    assert reasons(clicks) == reasons(items) == expected


def test_no_row_at_all():
    empty = batch_of(query=pa.array([], pa.binary()), item_id=pa.array([], pa.binary()))
    assert len(check_clicks(empty, Data(), NOW, known=pa.array([], pa.string()))) == 0

"""Tables in four formats against Python's own csv and json, with blocks of a few bytes."""

import csv
import gzip
import io
import json

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from pebr_tf.data.tables import Source, column_names, convert, format_of, read, read_table

FIELDS = "another number of fields than the header"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(read, "BLOCK", 200)
    monkeypatch.setattr(read, "PARQUET_ROWS", 3)


def source_of(content, name="log.csv", format="auto"):
    return Source(name, lambda: io.BytesIO(content), format)


def read_all(source, required=("query", "item_id"), optional=()):
    """Row number -> values, and row number -> reason."""
    rows, rejected = {}, {}
    for batch in read_table(source, list(required), list(optional)):
        values = zip(*batch.columns.to_pydict().values(), strict=True)
        rows |= dict(zip(batch.rows.tolist(), values, strict=True))
        rejected |= dict(
            zip(batch.rejected.rows.tolist(), batch.rejected.reasons.tolist(), strict=True)
        )
    assert not rows.keys() & rejected.keys()
    assert sorted(rows.keys() | rejected.keys()) == list(range(1, len(rows) + len(rejected) + 1))
    return rows, rejected


TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=10), st.sampled_from(["csv", "tsv"]))
@settings(max_examples=20, deadline=None)
def test_what_pythons_csv_module_writes_is_read(pairs, format):
    written = io.StringIO()
    writer = csv.writer(written, delimiter="," if format == "csv" else "\t", quoting=csv.QUOTE_ALL)
    writer.writerows([("query", "item_id"), *pairs])
    content = written.getvalue().encode()
    rows, rejected = read_all(source_of(content, f"x.{format}"))
    assert [tuple(value.decode() for value in rows[row]) for row in sorted(rows)] == pairs
    assert not rejected


@given(st.lists(st.booleans(), max_size=60))
@settings(max_examples=10, deadline=None)
def test_rows_with_another_number_of_fields_are_rejected_by_their_number(good):
    lines = [f"q{n},i{n}" if fits else f"q{n}" for n, fits in enumerate(good, 1)]
    rows, rejected = read_all(source_of("\n".join(["query,item_id", *lines]).encode()))
    assert rows == {n: (b"q%d" % n, b"i%d" % n) for n, fits in enumerate(good, 1) if fits}
    assert rejected == {n: FIELDS for n, fits in enumerate(good, 1) if not fits}


def test_rows_that_are_not_utf_8_are_counted_whatever_their_number_of_fields(capfd):
    content = b"query,item_id\na\xe9,i\n\xe9,i,1\n\xe9\nb,i\n"
    rows, rejected = read_all(source_of(content))
    assert rows == {1: (b"a\xff", b"i"), 4: (b"b", b"i")}
    assert rejected == {2: FIELDS, 3: FIELDS}
    assert capfd.readouterr().err == ""


def test_a_byte_order_mark_blank_lines_and_other_columns_are_skipped():
    content = b"\xef\xbb\xbfother,query,item_id\r\n\r\n1,a,b\r\n\r\n\r\n2,c,d\r\n\r\n"
    rows, rejected = read_all(source_of(content))
    assert rows == {1: (b"a", b"b"), 2: (b"c", b"d")}
    assert not rejected


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(("name", "mark"), [("x.csv", ","), ("x.csv", ";"), ("x.tsv", "\t")])
def test_a_value_that_begins_with_a_quote_takes_no_other_rows(name, mark, count, monkeypatch):
    """Rows that a program joined without quoting the values."""
    monkeypatch.setattr(read, "BLOCK", 10_000)
    texts = [f'"open {n}' if n % 50 < count else f'q{n} 12" tv' for n in range(150)]
    rows = [f"query{mark}item_id", *(f"{text}{mark}i{n}" for n, text in enumerate(texts))]
    rows, rejected = read_all(source_of("\n".join(rows).encode(), name))
    kept = texts if mark == "\t" else [text.removeprefix('"') for text in texts]
    assert [values[0].decode() for values in rows.values()] == kept
    assert not rejected


def test_quoted_values_stay_whole_beside_an_open_quote(monkeypatch):
    monkeypatch.setattr(read, "BLOCK", 10_000)
    content = b'query,item_id\n"a\nb ""x""\n,c",i1\n"d","i2"\n"open,i3\ne,i4\nf,"i5"\n'
    rows, rejected = read_all(source_of(content))
    texts = [b'a\nb "x"\n,c', b"d", b"open", b"e", b"f"]
    assert rows == {n: (text, b"i%d" % n) for n, text in enumerate(texts, 1)}
    assert not rejected


@pytest.mark.parametrize("header", ["query;item_id", "query\titem_id", "query|item_id"])
def test_the_header_of_a_csv_file_tells_its_delimiter(header):
    mark = header[5]
    rows, _ = read_all(source_of(f'{header}\n"a{mark}, b"{mark}c\n'.encode()))
    # A quote in tab-separated values is text.
    assert rows == ({1: (f"a{mark}, b".encode(), b"c")} if mark != "\t" else {})


def test_repeated_names_of_columns_that_are_not_read():
    content = b"query,item_id,t,t,,\na,b,1,2,,\n"
    assert read_all(source_of(content))[0] == {1: (b"a", b"b")}
    assert column_names(source_of(content)) == ["query", "item_id", "t", "t", "", ""]


@pytest.mark.parametrize("begin", [1, 13])
@pytest.mark.parametrize("order", ["{0:02}/{1}/2024 10:00", "{1}/{0:02}/2024 10:00"])
def test_the_whole_file_tells_the_day_from_the_month(order, begin):
    """Days in order: the first blocks have none above 12."""
    days = [*range(begin, 32), *range(1, begin)]
    rows = [f"q,i,{order.format(day, 5)}" for day in days]
    content = "\n".join(["query,item_id,time", *rows]).encode()
    batches = list(read_table(source_of(content), ["query"], ["time"], "time"))
    assert len(batches) > 3
    seconds = [s for each in batches for s in convert.time(each.columns.column(1)).to_pylist()]
    first = 1_714_557_600  # date -d "2024-05-01 10:00 UTC" +%s
    assert seconds == [first + 86_400 * (day - 1) for day in days]


def test_a_quote_that_is_never_closed_does_not_take_the_memory(monkeypatch):
    monkeypatch.setattr(read, "MAX_RECORD_BYTES", 400)
    content = b'query,item_id\n"open,1\n' + b"".join(b"q%d,%d\n" % (n, n) for n in range(300))
    blocks = list(read._record_blocks(io.BytesIO(content)))
    assert b"".join(blocks) == content
    assert max(map(len, blocks)) <= 600


RECORDS = [
    {"query": "red shoe", "item_id": "a"},
    {"query": "手机", "item_id": "b", "clicks": 3},
    {"query": "x", "item_id": "c", "clicks": 7, "other": [1, {"deep": None}]},
]


def json_lines(records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.mark.parametrize("block", [50, 10_000])
def test_json_lines(block, monkeypatch):
    monkeypatch.setattr(read, "BLOCK", block)
    rows, rejected = read_all(source_of(json_lines(RECORDS), "x.jsonl"), optional=("clicks",))
    queries = [values[0] for values in rows.values()]
    texts = [query.decode() if isinstance(query, bytes) else query for query in queries]
    assert texts == ["red shoe", "手机", "x"]
    assert not rejected


def test_a_required_key_may_be_missing_in_the_first_object(monkeypatch):
    monkeypatch.setattr(read, "BLOCK", 10_000)
    source = source_of(json_lines(RECORDS), "x.jsonl")
    assert column_names(source) == ["query", "item_id", "clicks", "other"]
    [batch] = read_table(source, ["query", "clicks"])
    assert batch.columns.column("clicks").to_pylist() == [None, b"3", b"7"]


def test_a_key_that_the_first_object_lacks_is_still_read(monkeypatch):
    monkeypatch.setattr(read, "BLOCK", 10_000)
    [batch] = read_table(source_of(json_lines(RECORDS), "x.jsonl"), ["query"], ["clicks"])
    assert batch.columns.column("clicks").to_pylist() == [None, b"3", b"7"]


@pytest.mark.parametrize("block", [20, 10_000])
def test_lines_that_are_not_an_object_are_rejected_by_their_number(block, monkeypatch):
    monkeypatch.setattr(read, "BLOCK", block)
    content = (
        b'{"query": "a", "item_id": 1}\n\n{"query": \n[1]\n{"query": "\xff", "item_id": 2}\n'
        b'{"query": "b", "item_id": 3}'
    )
    rows, rejected = read_all(source_of(content, "x.jsonl"))
    assert set(rows) == {1, 5}
    assert rejected == {2: "not JSON", 3: "not a JSON object", 4: "not UTF-8"}


def test_values_of_changing_types_are_read_as_they_are_written(monkeypatch):
    monkeypatch.setattr(read, "BLOCK", 10_000)
    records = [{"query": "a", "item_id": value} for value in ("x", 3, 2.5, True, None, 10**30)]
    [batch] = read_table(source_of(json_lines(records), "x.jsonl"), ["query", "item_id"])
    found = batch.columns.column("item_id").to_pylist()
    assert found == [b"x", b"3", b"2.5", b"true", None, b"1" + b"0" * 30]


def test_parquet():
    table = pa.table({"other": range(8), "item_id": range(8), "query": [f"q{n}" for n in range(8)]})
    written = io.BytesIO()
    pq.write_table(table, written)
    rows, rejected = read_all(source_of(written.getvalue(), "x.parquet"), optional=("clicks",))
    assert rows == {n + 1: (f"q{n}", n) for n in range(8)}
    assert not rejected


def test_gzip():
    content = b"query,item_id\n" + b"".join(b"q%d,%d\n" % (n, n) for n in range(50))
    rows, _ = read_all(source_of(gzip.compress(content), "x.csv.gz"))
    assert len(rows) == 50


def test_a_truncated_gzip_is_an_error_that_names_the_file(rejection):
    generator = np.random.default_rng(0)
    content = b"query,item_id\n" + b"".join(
        b"q%d,%d\n" % tuple(pair) for pair in generator.integers(10**9, size=(20, 2))
    )
    for kept in (1, 15, 200, -9, -1):
        source = source_of(gzip.compress(content)[:kept], "logs/x.csv.gz")
        sentence = rejection(read_all, source)
        assert sentence.startswith("logs/x.csv.gz must be readable to its end. Received")


@pytest.mark.parametrize(
    ("content", "name", "error"),
    [
        (b"", "a.csv", "a.csv must have the columns query, item_id. Received: nothing."),
        (b"", "a.jsonl", "a.jsonl must hold one JSON object per line. Received: nothing."),
        (
            b'[{"query": "a"}]',
            "a.json",
            'a.json must hold one JSON object per line. Received: [{"query": "a"}].',
        ),
        (
            "query,item_id\na,b\n".encode("utf-16"),
            "a.csv",
            "a.csv must be text in UTF-8. Received: NUL bytes, as in UTF-16 or in the file of a "
            "spreadsheet.",
        ),
        (
            b"query,item_id,query\na,b,c\n",
            "a.csv",
            "a.csv must have one column query. Received: 2 of this name.",
        ),
        (
            b'query,"item_id\na,' + b"b" * 200_000,
            "a.csv",
            "a.csv must be readable to its end. Received: field larger than field limit (131072).",
        ),
        (b"query,id\na,b\n", "a.csv", "a.csv must have the column item_id. Received: query, id."),
        (b'{"query": "a"}\n', "a.jsonl", "a.jsonl must have the column item_id. Received: query."),
    ],
)
def test_a_file_without_the_columns_is_rejected(content, name, error, rejection):
    assert rejection(read_all, source_of(content, name)) == error


def test_a_file_that_is_not_parquet_is_rejected(rejection):
    sentence = rejection(read_all, source_of(b"query,item_id\n", "a.parquet"))
    assert sentence.startswith("a.parquet must be readable to its end. Received")


def test_a_header_alone_is_a_table_without_rows():
    assert read_all(source_of(b"query,item_id\n")) == ({}, {})


def test_the_format_goes_by_the_name():
    names = ["a.csv", "s3://x/b.c/a.TSV", "a.jsonl.gz", "a.json", "part-0.parquet"]
    formats = ["csv", "tsv", "jsonl", "jsonl", "parquet"]
    assert [format_of(name) for name in names] == formats
    assert [format_of("anything", format) for format in formats] == formats


def test_a_name_that_says_nothing_requires_the_format(rejection):
    assert rejection(format_of, "logs/part-00000") == (
        "logs/part-00000 must end in .csv, .tsv, .jsonl or .parquet, with or without .gz: rename "
        "it, or set data.format. Received: no ending."
    )

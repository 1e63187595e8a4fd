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

from pebr_tf.data.tables import Source, format_of, read, read_table

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


def test_a_byte_order_mark_blank_lines_and_other_columns_are_skipped():
    content = b"\xef\xbb\xbfother,query,item_id\r\n\r\n1,a,b\r\n\r\n\r\n2,c,d\r\n\r\n"
    rows, rejected = read_all(source_of(content))
    assert rows == {1: (b"a", b"b"), 2: (b"c", b"d")}
    assert not rejected


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
            b"query;item_id\na;b\n",
            "a.csv",
            "a.csv must have the columns query, item_id. Received: query;item_id.",
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
        "logs/part-00000 must end in .csv, .tsv, .jsonl or .parquet, with or without .gz, or the "
        "format must be given. Received: no ending."
    )

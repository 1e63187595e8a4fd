"""JSON lines are valid JSON whatever the strings hold; the three formats hold the same values."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from pebr_tf.data.synthetic.formats import json_lines, write_table

HARD = [
    "plain",
    'a "quoted" word',
    "back\\slash",
    "line\nbreak",
    "tab\t\x01",
    "naïve 電話",
    "",
    "/",
]


def read_lines(table: pa.Table) -> list[dict[str, object]]:
    return [json.loads(line) for line in bytes(json_lines(table)).decode().split("\n")[:-1]]


@pytest.mark.parametrize("text", [*HARD, *map(chr, range(32))])
def test_every_string_is_escaped_on_its_own(text: str) -> None:
    table = pa.table({"query": ["plain", text]})
    assert read_lines(table) == table.to_pylist()


def test_strings_are_escaped_side_by_side() -> None:
    table = pa.table({'na"me': HARD * 2, "number": list(range(16))})
    assert read_lines(table) == table.to_pylist()


def test_plain_strings_take_the_fast_path_to_the_same_text() -> None:
    table = pa.table({"query": ["phone", "電話"], "share": [0.1, 1e-9], "clicks": [1, -2]})
    assert bytes(json_lines(table)).decode() == (
        '{"query": "phone", "share": 0.1, "clicks": 1}\n'
        '{"query": "電話", "share": 1e-9, "clicks": -2}\n'
    )


def test_lists_become_arrays() -> None:
    table = pa.table({"query": ["a", "b", "c"], "item_ids": [["x", 'y"'], [], ["z"]]})
    assert read_lines(table) == table.to_pylist()


@pytest.mark.parametrize("rows", [0, 3])
def test_a_slice_is_written_without_its_surroundings(rows: int) -> None:
    table = pa.table({"query": HARD, "item_ids": [[text] for text in HARD]})
    assert read_lines(table.slice(2, rows)) == table.slice(2, rows).to_pylist()


def test_chunked_columns_are_written_whole() -> None:
    table = pa.concat_tables([pa.table({"query": ["a"]}), pa.table({"query": ["b"]})])
    assert read_lines(table) == [{"query": "a"}, {"query": "b"}]


def test_files_hold_the_same_values(tmp_path: Path) -> None:
    table = pa.table({"query": HARD, "share": [n / 7 for n in range(8)], "n": range(8)})
    for ending in ("parquet", "csv", "jsonl"):
        write_table(table, tmp_path / f"table.{ending}")
    rows = table.to_pylist()
    assert pa.parquet.read_table(tmp_path / "table.parquet").to_pylist() == rows
    with (tmp_path / "table.jsonl").open(encoding="utf-8", newline="\n") as file:
        assert [json.loads(line) for line in file] == rows
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        read = [
            {"query": row["query"], "share": float(row["share"]), "n": int(row["n"])}
            for row in csv.DictReader(file)
        ]
    assert read == rows

"""The ranges of SyntheticSpec; three formats with the same values of any string."""

import csv
import json
import re

import pyarrow as pa
import pyarrow.parquet
import pytest

from pebr_tf.data.synthetic import SyntheticSpec
from pebr_tf.data.synthetic.writer import write_table
from pebr_tf.errors import UserError

HARD = [
    "plain",
    'a "quoted" word',
    "back\\slash",
    "line\nbreak",
    "tab\t\x01",
    "naïve 電話",
    "",
    "".join(map(chr, range(32))).replace("\x00", "").replace("\r", ""),
]


def test_files_hold_the_same_values(tmp_path):
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


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("items", 5, "--items must be an integer from 100 to 50000000. Received: 5."),
        ("items", 50_000_001, "--items must be an integer from 100 to 50000000."),
        ("items", "200", "--items must be an integer from 100 to 50000000. Received: '200'."),
        ("queries", 0, "--queries must be an integer from 1 to 10000000. Received: 0."),
        ("clicks", 0, "--clicks must be an integer from 1 to 10000000000. Received: 0."),
        ("seed", -1, "--seed must be an integer from 0 to 9223372036854775807. Received: -1."),
        ("noise", 1.0, "--noise must be a number from 0 to below 1. Received: 1.0."),
        ("noise", float("nan"), "--noise must be a number from 0 to below 1. Received: nan."),
        ("noise", -0.1, "--noise must be a number from 0 to below 1. Received: -0.1."),
    ],
)
def test_a_bad_value_is_named(name, value, text):
    with pytest.raises(UserError, match=re.escape(text)):
        SyntheticSpec(**{name: value})

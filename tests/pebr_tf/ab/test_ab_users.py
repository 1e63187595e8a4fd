"""From rows to users, in every format; what is rejected, and in which words."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from ab_logs import draw_log
from text_tables import cases

from pebr_tf.ab import columns_of, read_users, users
from pebr_tf.data.tables import Source
from pebr_tf.errors import UserError

COLUMNS, PAST = ("searches", "clicks"), ("clicks_before",)


def write(table, path):
    if ".parquet" in path.name:
        pyarrow.parquet.write_table(table, path)
    elif ".jsonl" in path.name:
        table.to_pandas().to_json(path, orient="records", lines=True)
    else:
        table.to_pandas().to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def read(path, columns=COLUMNS, past=PAST):
    return read_users(Source.local(path), "user", "arm", columns, past)


def by_id(found):
    columns = [found.arms, found.rows, *found.totals.values(), *found.past.values()]
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    return dict(zip(found.ids.to_pylist(), rows, strict=True))


@pytest.mark.parametrize(
    ("name", "waiting"),
    [
        ("a.csv", 2_000_000),
        *((f"a.{kind}", 50) for kind in ("csv", "tsv", "jsonl", "parquet", "csv.gz")),
    ],
)
def test_users_are_summed_as_pandas_sums_them(name, waiting, tmp_path, monkeypatch):
    monkeypatch.setattr(users, "MAX_BUFFERED_ROWS", waiting)
    monkeypatch.setattr("pebr_tf.data.tables.read.BLOCK", 2_000)
    monkeypatch.setattr("pebr_tf.data.tables.read.PARQUET_ROWS", 100)
    log = draw_log(0, 80, ["new", "control", "other"], [0, 0, 0])
    frame = log.to_pandas().groupby("user")
    sums = {"searches": "sum", "clicks": "sum"}
    expected = frame.agg({"arm": "first", **sums, "clicks_before": "first"})
    expected.insert(1, "rows", frame.size())
    expected["arm"] = expected["arm"].map(["control", "new", "other"].index)
    found = read(write(log, tmp_path / name))
    assert found.names == ("control", "new", "other")
    assert found.crossing == 0
    assert by_id(found) == {str(row[0]): tuple(row[1:]) for row in expected.itertuples()}


def test_users_of_two_arms_are_left_out_and_counted(tmp_path):
    table = pa.table(
        {
            "user": ["u", "v", "w", "x", "u", "y", "z", "z"],
            "arm": ["a", "a", "b", "b", "b", "a", "b", "a"],
            "clicks": [1, 2, 3, 4, 5, 6, 7, 8],
        }
    )
    found = read(write(table, tmp_path / "a.csv"), ["clicks"], [])
    assert found.crossing == 2
    assert by_id(found) == {"v": (0, 1, 2), "w": (1, 1, 3), "x": (1, 1, 4), "y": (0, 1, 6)}


def test_amounts_in_every_notation(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,arm,n\n1,a,true\n2,a,False\n3,b, 1.5 \n4,b,+2e1\n5,b,7\n")
    np.testing.assert_array_equal(read(path, ["n"], []).totals["n"], [1, 0, 1.5, 20, 7])
    path = tmp_path / "a.jsonl"
    values = ["true", "false", '"1.5"', "20", "7.0"]
    rows = (f'"user": {at}, "arm": "{"ab"[at > 1]}", "n": {n}' for at, n in enumerate(values))
    path.write_text("".join(f"{{{row}}}\n" for row in rows))
    np.testing.assert_array_equal(read(path, ["n"], []).totals["n"], [1, 0, 1.5, 20, 7])


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 0, 1, 1], pa.uint8()),
        pa.array([True, False, True, True]),
        pa.array([Decimal("1.00"), Decimal(0), Decimal(1), Decimal(1)]),
        pa.array(["1", "0", "1", "1"]).dictionary_encode(),
    ],
    ids=["integers", "truths", "decimals", "dictionary"],
)
def test_amounts_in_every_type_of_parquet(values, tmp_path):
    arms = pa.array(["a", "a", "b", "b"]).dictionary_encode()
    table = pa.table({"user": pa.array([1.0, 2.0, 3.0, 4.0]), "arm": arms, "n": values})
    found = read(write(table, tmp_path / "a.parquet"), ["n"], [])
    assert by_id(found) == {"1": (0, 1, 1), "2": (0, 1, 0), "3": (1, 1, 1), "4": (1, 1, 1)}


def test_sums_keep_what_float32_would_lose(tmp_path):
    table = pa.table({"user": [1, 2, 3, 4], "arm": ["a", "a", "b", "b"], "n": [2**24 + 1] * 4})
    for name in ("a.csv", "a.parquet"):
        found = read(write(table, tmp_path / name), ["n"], [])
        assert set(found.totals["n"].tolist()) == {2**24 + 1}


def test_which_columns_have_values(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"user": 1, "arm": "a", "clicks": 1, "odd": true}\n'
        '{"user": 2, "arm": "b", "orders": null}\n'
    )
    found = columns_of(Source.local(path), "user", "arm", ["clicks", "orders", "converted"])
    assert found == {"clicks"}


HEAD = "user,arm,searches,clicks,clicks_before"
GOOD = ["u,a,3,1,5", "v,a,3,1,5", "w,b,3,1,5", "x,b,3,1,5"]
# The rows of a file, "=" for HEAD and GOOD, and below them the sentence that rejects it.
REJECTIONS = """\
user,clicks / 1,2
    {} must have the columns arm, searches, clicks_before. Received: user, clicks.
HEAD
    {} must have rows. Received: none.
HEAD / u,a,3,1,5 /  / v,a,3,1,5
    the arms must be two or more. Received: a.
HEAD / u,a,3,1,5 / v,a,3,1,5 / w,b,3,1,5
    each arm must have two users or more of its own. Received: 1 in b.
= / y,b,3,-1,5
    clicks of {} must be a number from 0 up in every row. Received: -1 in row 5.
= / y,b,3,nan,5
    clicks of {} must be a number from 0 up in every row. Received: nan in row 5.
= / y,b,3,inf,5
    clicks of {} must be a number from 0 up in every row. Received: inf in row 5.
= / y,b,3,many,5
    clicks of {} must be a number from 0 up in every row. Received: many in row 5.
= / y,b,3,1,
    clicks_before of {} must be a number from 0 up in every row. Received: nothing in row 5.
= / ,b,3,1,5
    user of {} must have a value in every row. Received: nothing in row 5.
= / y,b,3
    {} must have whole rows. Received: another number of fields than the header in row 5.
= / x,b,3,1,6
    clicks_before must be the same in all rows of a user, since it was before the experiment.
    Received: 5 and 6 for user x.
"""


@pytest.mark.parametrize(("rows", "message"), cases(REJECTIONS))
def test_rejections(rows, message, tmp_path, rejection):
    path = tmp_path / "log.csv"
    rows = rows.replace("=", " / ".join([HEAD, *GOOD])).replace("HEAD", HEAD)
    path.write_text(rows.replace(" / ", "\n") + "\n")
    assert rejection(read, path) == message.format(path)


def test_too_many_arms(tmp_path, rejection):
    path = tmp_path / "log.csv"
    path.write_text("\n".join([HEAD, *(f"u,arm {at},3,1,5" for at in range(51)), ""]))
    assert rejection(read, path) == (
        "arm must have at most 50 different values, the arms. Received: arm 0, arm 1, arm 2, ..."
    )


def test_a_missing_number_in_parquet_is_rejected(tmp_path):
    table = pa.table({"user": [1, 2], "arm": ["a", "b"], "n": [1.0, None]})
    with pytest.raises(UserError, match=r"^n of .* in every row. Received: nothing in row 2"):
        read(write(table, tmp_path / "a.parquet"), ["n"], [])

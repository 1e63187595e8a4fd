"""Bad files, full disks and kills: a clear error or a right result, never half an artifact."""

import gzip
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_gen_runs import (
    HEADER,
    LOG,
    config_of,
    csv_of,
    left_behind,
    run,
    write_catalogue,
    write_log,
)

from components.click_log_example_gen import ledger, settings
from pebr_tf.config import Config
from pebr_tf.errors import UserError


@pytest.fixture
def folder(tmp_path):
    write_log(tmp_path)
    write_catalogue(tmp_path)
    return tmp_path


def error_of(folder, config):
    """The text of the error that ends the run; nothing looks like an artifact then."""
    with pytest.raises(UserError) as error:
        run(folder, config)
    assert [name for name in left_behind(folder) if ".refused/" not in name] == []
    return str(error.value).replace(str(folder), "DIR")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            None,
            "data.click_log must name a file, or files by a glob. "
            "Received: DIR/log.csv: no such file.",
        ),
        (b"", "DIR/log.csv must have the columns query, item_id. Received: nothing."),
        (HEADER.encode(), "The click log must have a good row. Received: no row in DIR/log.csv."),
        (
            csv_of(LOG).replace(",", ";").encode(),
            "DIR/log.csv must have the columns query, item_id. "
            "Received: query;item_id;clicks;timestamp.",
        ),
    ],
    ids=["missing", "empty", "header only", "wrong delimiter"],
)
def test_a_click_log_that_cannot_be_used(folder, content, expected):
    (folder / "log.csv").unlink()
    if content is not None:
        (folder / "log.csv").write_bytes(content)
    assert error_of(folder, config_of(folder)) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "item_id,title\ni1,t\n",
            "DIR/items.csv must have the columns brand, price. Received: item_id, title.",
        ),
        (
            "item_id,title,brand,price\n",
            "The catalogue must have a good row. Received: no row in DIR/items.csv.",
        ),
    ],
    ids=["lacks columns", "header only"],
)
def test_a_catalogue_that_cannot_be_used(folder, content, expected):
    (folder / "items.csv").write_text(content)
    assert error_of(folder, config_of(folder)) == expected


def test_a_glob_without_files_and_a_folder(folder):
    text = error_of(folder, config_of(folder, catalogue="none/*.csv"))
    assert text == (
        "data.catalogue must name a file, or files by a glob. Received: DIR/none/*.csv: no such "
        "file."
    )
    assert error_of(folder, config_of(folder, log="")).endswith("Received: DIR: a folder.")


def test_a_gzip_that_was_cut_short(folder):
    whole = gzip.compress(csv_of(LOG).encode())
    (folder / "log.csv.gz").write_bytes(whole[: len(whole) // 2])
    text = error_of(folder, config_of(folder, log="log.csv.gz"))
    assert text == (
        "DIR/log.csv.gz must be readable to its end. Received: Compressed file ended before the "
        "end-of-stream marker was reached."
    )


def test_a_parquet_file_of_other_types(folder):
    """Numbers for texts and floats for numbers are read; lists for ids are refused row by row."""
    queries = [n % 40 for n in range(400)]
    items = pa.array([row[1] for row in LOG]).dictionary_encode()
    table = pa.table({"query": queries, "item_id": items, "clicks": [2.0] * 400})
    pq.write_table(table, folder / "log.parquet")
    left = run(folder, config_of(folder, log="log.parquet"))
    assert len(left.all_clicks()) == 400
    assert {click["query"] for click in left.all_clicks()} == {b"%d" % n for n in range(40)}
    assert {click["clicks"] for click in left.all_clicks()} == {2}
    pq.write_table(pa.table({"query": ["q"] * 9, "item_id": [["i1"]] * 9}), folder / "log.parquet")
    text = error_of(folder, config_of(folder, log="log.parquet"))
    assert "Received: 9 of 9 rows (100.000%): 9 item_id is not UTF-8 text." in text


def test_equal_rows_are_clicks_each(folder):
    write_log(folder, LOG * 2)
    left = run(folder, config_of(folder))
    assert len(left.all_clicks()) == 800


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [("one", f"i{n % 20}", 1, n) for n in range(300)],
            "but none is in test: more queries, or another split.by or seed, may help. "
            "Received clicks: train 240, calibrate 60, test 0.",
        ),
        (
            [("one", "i1", 1, n) for n in range(50)],
            "but none is in calibrate and test: more queries, or another split.by or seed, may "
            "help. Received clicks: train 50, calibrate 0, test 0.",
        ),
    ],
    ids=["one query", "one pair"],
)
def test_too_little_for_every_split(folder, rows, expected):
    write_log(folder, rows)
    assert error_of(folder, config_of(folder)) == (
        "Every split must have a click (split.by: pair; train 80%, calibrate 10%, test 10%), "
        + expected
    )


def test_one_item_only_is_enough(folder):
    write_log(folder, [(f"query {n}", "i7", 1, n) for n in range(200)])
    left = run(folder, config_of(folder))
    assert {click["item_id"] for click in left.all_clicks()} == {b"i7"}


def test_features_named_like_those_of_a_click_are_refused():
    config = Config().replace("features.item_categories", ["clicks"])
    with pytest.raises(UserError, match=r"have other names than a click's\. Received: clicks\."):
        settings.exec_properties(config)
    config = Config().replace("features.item_numbers", ["title"])
    with pytest.raises(UserError, match=r"must be no item_numbers\. Received: title\."):
        settings.exec_properties(config)


def test_a_full_disk_leaves_nothing(folder, monkeypatch):
    """Of the test split; the others are on disk by then."""
    name = ledger.Ledger._new_path

    def on_a_full_disk(self, ending):
        return "/dev/full" if ending == "test.gz" else name(self, ending)

    monkeypatch.setattr(ledger.Ledger, "_new_path", on_a_full_disk)
    text = error_of(folder, config_of(folder))
    assert text == (
        "DIR/out/examples/1 must have room for the examples. Received: No space left on device."
    )


KILLED = """
    import os, signal, sys
    sys.path.insert(0, {tests!r})
    from pathlib import Path
    from example_gen_runs import config_of, run
    from components.click_log_example_gen import {module}
    real = {module}.{name}

    def killed_at_the_second(*args, calls=[]):
        calls.append(args)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)

    {module}.{name} = killed_at_the_second
    run(Path({folder!r}), config_of(Path({folder!r})))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"),
    [("ledger", "Ledger.keep"), ("publish", "fileio.rename")],
    ids=["while writing", "while publishing"],
)
def test_a_run_after_a_kill_is_right(folder, module, name):
    script = textwrap.dedent(KILLED).format(
        tests=str(Path(__file__).parent), folder=str(folder), module=module, name=name
    )
    killed = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[3], capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    left = left_behind(folder)
    assert left, "the kill came too early to leave anything"
    assert not any(name.endswith("accounting.json") for name in left)
    run(folder, config_of(folder))
    again = left_behind(folder)
    assert len(run(folder, config_of(folder)).all_clicks()) == len(LOG)
    assert (
        again
        == left_behind(folder)
        == sorted(
            [
                "catalogue/1/Split-items/data_tfrecord-00000-of-00001.gz",
                "dead_letters/1/accounting.json",
                "dead_letters/1/dead_letters.jsonl.gz",
                *(
                    f"examples/1/Split-{split}/data_tfrecord-00000-of-00001.gz"
                    for split in ("train", "calibrate", "test")
                ),
            ]
        )
    )

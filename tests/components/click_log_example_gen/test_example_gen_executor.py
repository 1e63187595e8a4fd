"""From files to Examples: every feature of every row, accounting and dead letters."""

import collections
import gzip
import json

import example_gen_runs as runs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_gen_runs import ITEMS, LOG, config_of, csv_of, run, write_catalogue, write_log
from tfx.types import artifact_utils

from components.click_log_example_gen import bundle_writer, clicks
from pebr_tf.config import Split
from pebr_tf.data import splits
from pebr_tf.data.log_size import LogSize

pytestmark = pytest.mark.slow


def expected_click(query, item, clicks=1, timestamp=0):
    texts = {"query": query.encode(), "item_id": item.encode()}
    return {**texts, "clicks": clicks, "timestamp": timestamp}


def expected_item(number):
    return {
        "item_id": f"i{number}".encode(),
        "title": f"title {number}".encode(),
        "brand": f"brand{number % 3}".encode(),
        "price": number + 0.5,
    }


def all_kept(count):
    return {"read": count, "kept": count, "rejected": 0, "reasons": {}}


def with_item(click):
    return {**click, **expected_item(int(click["item_id"][1:]))}


def multiset(rows):
    return collections.Counter(tuple(sorted(row.items())) for row in rows)


@pytest.fixture
def folder(tmp_path):
    write_log(tmp_path)
    write_catalogue(tmp_path)
    return tmp_path


def test_every_click_comes_out_once_in_the_split_of_its_pair(folder, monkeypatch):
    monkeypatch.setattr(bundle_writer, "SHARD_ROWS", 100)
    left = run(folder, config_of(folder))
    assert multiset(left.all_clicks()) == multiset(expected_click(*row) for row in LOG)
    query, item = (pa.array([row[column] for row in LOG]) for column in (0, 1))
    places = splits.assign(Split(), query, item, np.zeros(len(LOG)))
    for number, name in enumerate(splits.NAMES):
        chosen = [expected_click(*row) for row, at in zip(LOG, places, strict=True) if at == number]
        assert multiset(left.clicks(name)) == multiset(chosen)
        assert multiset(left.sample(name)) == multiset(map(with_item, chosen))
    assert left.items() == [expected_item(n) for n in range(ITEMS)]
    examples, catalogue = (left.artifacts[name] for name in ("examples", "catalogue"))
    counts = {name: len(left.clicks(name)) for name in splits.NAMES}
    accounts = {
        table: all_kept(count) | {"files": [f"{folder}/{name}"]}
        for table, count, name in (("clicks", 400, "log.csv"), ("items", ITEMS, "items.csv"))
    }
    assert left.accounting == {**accounts, "splits": counts, "span": None}
    trained = left.clicks("train")
    different = len({row["query"] for row in trained})
    assert LogSize.load(examples.uri) == LogSize(len(trained), different, ITEMS)
    assert left.letters == []
    assert not any(".writing" in name for name in runs.left_behind(folder))
    assert artifact_utils.decode_split_names(examples.split_names) == [*splits.NAMES, "texts"]
    assert artifact_utils.decode_split_names(catalogue.split_names) == ["items"]
    assert examples.get_string_custom_property("payload_format") == "FORMAT_TF_EXAMPLE"
    assert examples.get_string_custom_property("file_format") == "tfrecords_gzip"
    assert examples.get_string_custom_property("input_fingerprint")


def test_texts_have_every_training_query_and_every_item_once_with_its_clicks(folder, monkeypatch):
    """Also from two files, whose workers count apart; an item that nobody clicked has 0."""
    write_catalogue(folder, ITEMS + 1)
    write_log(folder, LOG[:150], "log1.csv")
    write_log(folder, LOG[150:], "log2.csv")
    monkeypatch.setattr(clicks, "COUNTED_ROWS", 20)
    left = run(folder, config_of(folder, log="log?.csv"))
    counts = collections.Counter()
    for click in left.clicks("train"):
        counts[click["query"], b""] += click["clicks"]
        counts[b"", click["item_id"]] += click["clicks"]
    queries = [
        {"query": query, "item_id": b"", "clicks": count, "title": b"", "brand": b"", "price": 0.0}
        for (query, _), count in counts.items()
        if query
    ]
    items = [
        {"query": b"", "clicks": counts[b"", b"i%d" % n], **expected_item(n)}
        for n in range(ITEMS + 1)
    ]
    assert items[-1]["clicks"] == 0
    assert multiset(left.clicks("texts")) == multiset([*queries, *items])


def test_statistics_get_a_random_sample_of_a_large_split(folder):
    """It is the same in every run, and takes from all of the log."""
    rows = [(f"query {n % 40}", f"i{n % ITEMS}", 1, n) for n in range(3_000)]
    write_log(folder, rows)
    config = config_of(folder, data__statistics_rows=500, split__calibrate=0.3)
    left = run(folder, config)
    sample = left.sample("train")
    assert len(sample) == 500
    assert multiset(sample) <= multiset(map(with_item, left.clicks("train")))
    times = np.array([click["timestamp"] for click in sample])
    # The mean of 500 times has a standard error of 3,000 / sqrt(12 * 500) = 39.
    assert abs(times.mean() - 1_500) < 4 * 39
    assert multiset(run(folder, config).sample("train")) == multiset(sample)


def test_rejected_rows_are_listed_and_counted(folder):
    """Clicks and items; the second row of an item is rejected."""
    log = csv_of(LOG).encode()
    log += b"caf\xe9,i1,1,0\nq,i99,1,0\nq,i1\nq,i1,-1,0\n"
    (folder / "log.csv").write_bytes(log)
    items = (folder / "items.csv").read_text()
    (folder / "items.csv").write_text(items + "i3,another,b,1\n,no id,b,1\ni98,t,b,much\n")
    left = run(folder, config_of(folder, data__reject_limit=0.5))
    log, items = str(folder / "log.csv"), str(folder / "items.csv")
    reasons = {
        (log, 401): "query is not UTF-8 text",
        (log, 402): "item not in the catalogue",
        (log, 403): "another number of fields than the header",
        (log, 404): "negative clicks",
        (items, 21): "item twice",
        (items, 22): "no item_id",
        (items, 23): "price is not a number",
    }
    received = {(letter["file"], letter["row"]): letter["reason"] for letter in left.letters}
    assert received == reasons
    assert len(left.letters) == len(reasons)
    assert (len(left.all_clicks()), len(left.items())) == (400, ITEMS)
    assert left.items()[3]["title"] == b"title 3"
    for table, read, kept in (("clicks", 404, 400), ("items", 23, ITEMS)):
        account = left.accounting[table]
        assert (account["read"], account["kept"], account["rejected"]) == (read, kept, read - kept)
        assert sum(account["reasons"].values()) == read - kept


def test_too_many_bad_rows_end_the_run_and_the_dead_letters_survive(folder, rejection):
    rows = [*LOG, *[("q", "unknown", 1, 0)] * 30, *[("", "i1", 1, 0)] * 10]
    write_log(folder, rows)
    rejected = folder / "out" / "dead_letters" / "1.rejected"
    assert rejection(run, folder, config_of(folder)) == (
        "Bad rows of the click log must stay within data.reject_limit (1.000%). Received: 40 of "
        "440 rows (9.091%): 30 item not in the catalogue, 10 no query. They are listed in "
        f"{rejected}/dead_letters.jsonl.gz."
    )
    assert runs.left_behind(folder) == [
        "dead_letters/1.rejected/accounting.json",
        "dead_letters/1.rejected/dead_letters.jsonl.gz",
    ]
    assert sorted(letter["row"] for letter in runs.letters_in(rejected)) == list(range(401, 441))
    assert json.loads((rejected / "accounting.json").read_text())["clicks"]["kept"] == 400
    write_log(folder)
    run(folder, config_of(folder))
    assert not rejected.exists()


def test_a_log_that_has_the_columns_of_its_items(folder):
    """The first row of an item gives its columns, in the order of files; all files have clicks."""
    header = "query,item_id,clicks,timestamp,title,brand,price"
    for part in range(2):
        rows = [
            (*row, f"title {row[1][1:]} of {part} {place}", "b", "")
            for place, row in enumerate(LOG[part * 200 :][:200])
        ]
        (folder / f"part{part}.csv").write_text(csv_of(rows, header))
    left = run(folder, config_of(folder, log="part*.csv", catalogue=None))
    titles = {f"i{n}".encode(): f"title {n} of 0 {n}".encode() for n in range(ITEMS)}
    assert {item["item_id"]: item["title"] for item in left.items()} == titles
    clicked = {(click["item_id"], click["title"]) for click in left.sample("train")}
    assert clicked <= set(titles.items())
    assert {item["price"] for item in left.items()} == {0.0}
    assert len(left.all_clicks()) == 400
    assert left.accounting["items"].items() > all_kept(ITEMS).items()


def test_by_time_the_latest_are_held_out_over_all_files(folder):
    """The cut is a quantile of the good clicks of all files; the worker is another process."""
    apart = ["--direct_running_mode=multi_processing", "--direct_num_workers=1"]
    (folder / "3").mkdir()
    write_log(folder / "3", LOG[:100], "part2.csv")
    write_log(folder / "3", [*LOG[100:], ("q", "unknown", 1, 5)], "part1.csv")
    config = config_of(folder, log="{SPAN}/part*.csv", split__by="time")
    left = run(folder, config, apart)
    times = np.array([row[3] for row in LOG])
    begins = splits.held_out_from(Split(), times)
    train = {click["timestamp"] for click in left.clicks("train")}
    assert train == {time for time in times.tolist() if time < begins}
    assert multiset(left.all_clicks()) == multiset(expected_click(*row) for row in LOG)
    assert left.accounting["clicks"]["rejected"] == 1
    # Without a driver, as under Kubeflow, the executor finds the span.
    assert left.accounting["span"] == 3
    assert left.artifacts["examples"].get_int_custom_property("span") == 3
    assert left.artifacts["catalogue"].get_int_custom_property("span") == 3


def test_all_formats_and_globs_read_alike(folder):
    logs = folder / "logs"
    logs.mkdir()
    write_log(logs, LOG[:100], "a.csv")
    with gzip.open(logs / "b.tsv.gz", "wt") as file:
        file.write(csv_of(LOG[100:200]).replace(",", "\t"))
    names = ("query", "item_id", "clicks", "timestamp")
    records = [dict(zip(names, row, strict=True)) for row in LOG]
    (logs / "c.jsonl").write_text("\n".join(map(json.dumps, records[200:300])))
    pq.write_table(pa.Table.from_pylist(records[300:]), logs / "d.parquet")
    (logs / "_SUCCESS").touch()
    (logs / ".hidden.csv").write_text("half a fi")
    left = run(folder, config_of(folder, log="logs/*"))
    assert multiset(left.all_clicks()) == multiset(expected_click(*row) for row in LOG)
    names = [name.rsplit("/", 1)[1] for name in left.accounting["clicks"]["files"]]
    assert names == ["a.csv", "b.tsv.gz", "c.jsonl", "d.parquet"]


def test_payload_columns_and_long_texts(folder):
    """A payload column that is no feature is in the catalogue alone.

    Texts are cut where only their tokens count, at 10 characters per token; neither categories nor
    the catalogue are cut.
    """
    whole, colour = "é" * 19 + "!", "c" * 30
    rows = [(f"i{n}", whole, "brand", n, colour) for n in range(ITEMS)]
    (folder / "items.csv").write_text(csv_of(rows, "item_id,title,brand,price,colour"))
    features = {"features__item_categories": ["colour"], "features__max_tokens": 1}
    config = config_of(folder, data__payload_columns=["title", "brand", "price"], **features)
    left = run(folder, config)
    texts = {"item_id": b"i1", "title": whole.encode(), "brand": b"brand"}
    assert left.items()[1] == {**texts, "price": 1.0, "colour": colour.encode()}
    columns = {"query", "item_id", "clicks", "title", "price", "colour"}
    assert set(left.clicks("texts")[0]) == columns
    assert set(left.sample("train")[0]) == {*columns, "timestamp"}
    found = [row for row in left.clicks("texts") if row["item_id"]] + left.sample("train")
    expected = {("é".encode() * 10, colour.encode())}
    assert {(row["title"], row["colour"]) for row in found} == expected

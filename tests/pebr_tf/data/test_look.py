"""Guessed columns, and what a look at the files reports, on awkward logs and on bad ones."""

import csv

import pyarrow as pa
import pytest
from awkward_logs import LOGS, TIMES, Log
from text_tables import cases

from pebr_tf.config import Config
from pebr_tf.data import look as module
from pebr_tf.data import splits
from pebr_tf.data.guess import guess_config
from pebr_tf.data.look import find_problems, look, unused_columns
from pebr_tf.data.tables import convert, read


def guessed(folder, name):
    clicks, catalogue = LOGS[name](folder)
    return guess_config(str(clicks), catalogue and str(catalogue))


def changed(config):
    """The settings that are not at their defaults, without the paths."""
    paths = ("data.click_log", "data.catalogue")
    return {key: value for key, value in config.changes().items() if key not in paths}


NO_COUNTS = {"data.clicks_column": None, "data.timestamp_column": None}
NO_TEXT = {"data.payload_columns": (), "features.item_text": (), "features.item_id": True}
NO_TEXT |= NO_COUNTS
IDS = {"data.query_column": "query_id", "features.query_kind": "id"}
GUESSES = {
    **dict.fromkeys(LOGS, NO_COUNTS),
    **{f"times_{form}": {**NO_COUNTS, "data.timestamp_column": "time"} for form in TIMES},
    "user_agents": {**NO_TEXT, **IDS, "data.timestamp_column": "clicked_at"},
    "texts_in_the_log": NO_COUNTS
    | dict.fromkeys(("data.payload_columns", "features.item_text"), ("produit",)),
    "impressions": {**NO_COUNTS, "data.clicks_column": "clicked"},
    "two_ids": {**NO_COUNTS, "data.item_column": "sku"},
    "row_numbers": {**NO_TEXT, "data.item_column": "clicked_url"},
    "query_ids": {**NO_TEXT, **IDS, "data.item_column": "product_id"},
    "no_item_text": {**NO_TEXT, "data.query_column": "search_term", "data.item_column": "asin"},
}


@pytest.mark.parametrize("name", LOGS)
def test_an_awkward_log_is_understood_and_has_no_problem(tmp_path, name):
    config = guessed(tmp_path, name)
    assert changed(config) == GUESSES[name]
    found = look(config)
    assert found.problems == []
    assert "rejected" not in found.facts["click log"]
    by_time = config.replace("split.by", "time") if config.data.timestamp_column else config
    assert look(by_time).problems == []


def test_the_facts_of_a_log(tmp_path):
    """An independent count of what the look reports."""
    config = guessed(tmp_path, "few_queries")
    with (tmp_path / "clicks.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = look(config)
    facts = found.facts
    assert facts["columns of data.click_log"] == "query (text), item_id (text)"
    assert facts["click log"] == f"{len(rows):,} rows"
    assert facts["queries"] == f"{len({row['query'] for row in rows})} (text)"
    assert facts["items"] == "400 (text: title)"
    [note] = found.notes
    assert "fewer than 200 (cutoff.min_calibration_queries): the test queries c" in note
    assert facts["auto"] == (
        "vocabulary_size 100000, dimension 64, batch_size 256, steps 183, "
        "validation_interval 45, average_k [5, 10, 30]"
    )


def test_so_few_held_out_queries_that_nothing_can_be_promised(tmp_path, monkeypatch):
    config = guessed(tmp_path, "few_queries")
    found = module.look_at_small_log(config)
    assert found.problems == []
    held_out = sum(int(word) for word in found.facts["held out"].split() if word.isdecimal())
    monkeypatch.setattr(splits, "LEAST_QUERIES", held_out + 1)
    assert module.look_at_small_log(config).problems == [
        f"the splits calibrate and test must have at least {held_out + 1} queries with clicks that "
        f"were held out. Received: {held_out}."
    ]
    spans = config.replace("data.catalogue", f"{tmp_path}/i{{SPAN}}.csv")
    assert module.look_at_small_log(spans) == module.DataCheck()
    # The catalogue alone is too large.
    monkeypatch.setattr(module, "SMALL_BYTES", (tmp_path / "clicks.csv").stat().st_size + 10)
    assert module.look_at_small_log(config) == module.DataCheck()


@pytest.mark.parametrize(
    ("texts", "seconds"),
    [
        (["12/31/2024 10:00", "01/02/2024 00:00"], [1735639200, 1704153600]),
        (["31.12.2024", "1.2.2024"], [1735603200, 1706745600]),
        (["2024/12/31 10:00"], [1735639200]),
        # Nothing tells the day from the month, or the values contradict each other.
        (["01/02/2024", "03/04/2024"], [None, None]),
        (["31/12/2024", "12/31/2024"], [None, None]),
        (["32/13/2024"], [None]),
    ],
)
def test_days_and_months(texts, seconds):
    assert convert.time(pa.array(texts)).to_pylist() == seconds


def test_names_are_found_whatever_their_spelling(tmp_path):
    log = Log(clicks=300)
    log.header = ["Search-Term", "ProductID", "Click Count", "Event.Time", "title"]
    log.rows = [[*row, 2, "2024-01-01", "a red lamp"] for row in log.rows]
    clicks, _ = log.write(tmp_path, catalogue=False)
    data = guess_config(str(clicks)).data
    assert (data.query_column, data.item_column) == ("Search-Term", "ProductID")
    assert (data.clicks_column, data.timestamp_column) == ("Click Count", "Event.Time")
    assert data.payload_columns == ("title",)
    assert look(guess_config(str(clicks))).facts["columns of data.click_log"] == (
        "Search-Term (text), ProductID (text), Click Count (whole number), Event.Time (time), "
        "title (text)"
    )


def test_a_column_that_does_not_hold_what_its_name_says_is_left_out(tmp_path):
    log = Log(clicks=300)
    log.header = ["query", "item_id", "clicks", "time"]
    log.rows = [[*row, "many", "yesterday"] for row in log.rows]
    clicks, _ = log.write(tmp_path, catalogue=False)
    data = guess_config(str(clicks)).data
    assert (data.clicks_column, data.timestamp_column) == (None, None)


# A log and a catalogue, and below them the sentence that rejects them.
NOT_GUESSED = """\
a,b/1,2 +
    LOG must have one column of queries, such as query or search_query. Received: a, b. If one of
    these holds the queries, run pebr config init without --clicks, and set data.query_column and
    data.item_column.
chair green,p35/red lamp,p7 +
    LOG must have one column of queries, such as query or search_query. Received: chair green, p35.
    The first line must be the names of the columns.
query,item_id/x,1,/y,2, +
    LOG must have rows that can be read. Received: 2 rows with another number of fields than the
    header.
query,item_id/x,1 + sku,title/2,t
    ITEMS must have the column item_id, as the click log has it. Rename it in one of the files.
    Received: sku, title.
query,item_id/x,1 + row,sku,title/1,1.0,t
    ITEMS must have the column item_id, as the click log has it: sku has the same values. Rename it
    in one of the files. Received: row, sku, title.
"""


@pytest.mark.parametrize(("content", "sentence"), cases(NOT_GUESSED))
def test_columns_that_cannot_be_guessed_are_reported(tmp_path, rejection, content, sentence):
    log, items = tmp_path / "log.csv", tmp_path / "items.csv"
    for path, text in zip((log, items), content.split("+"), strict=True):
        path.write_text(text.strip().replace("/", "\n") + "\n")
    given = (str(log), str(items)) if items.read_text().strip() else (str(log),)
    expected = sentence.replace("LOG", str(log)).replace("ITEMS", str(items))
    assert rejection(guess_config, *given) == expected


def test_missing_files_and_columns_are_all_listed(tmp_path):
    (tmp_path / "items.csv").write_text("item_id,name\n1,t\n")
    config = Config().replace_all(
        {"data.click_log": f"{tmp_path}/none-*", "data.catalogue": f"{tmp_path}/items.csv"}
    )
    expected = [
        "data.click_log must name a file, or files by a glob. "
        f"Received: {tmp_path}/none-*: no such file.",
        f"{tmp_path}/items.csv must have the column title. Received: item_id, name.",
    ]
    assert find_problems(config) == expected
    assert look(config).problems == expected
    remote = {"data.click_log": "gs://b/c-{SPAN}/*", "data.catalogue": "bigquery://p.d.t"}
    assert find_problems(config.replace_all(remote)) == []
    assert look(config.replace_all(remote)).facts == {}


def test_spans_are_found(tmp_path):
    (tmp_path / "2024-01-02").mkdir()
    (tmp_path / "2024-01-02/log.csv").write_text("query,item_id,title\nq,1,t\n")
    config = Config().replace_all(
        {"data.click_log": f"{tmp_path}/{{YYYY}}-{{MM}}-{{DD}}/*.csv", "data.catalogue": None}
    )
    assert find_problems(config) == []


def test_bad_rows_and_an_empty_split_are_listed(tmp_path):
    (tmp_path / "items.csv").write_text("item_id,title\n1,t\n")
    (tmp_path / "log.csv").write_text("query,item_id\nq,1\n,1\nq,9\n")
    config = guess_config(str(tmp_path / "log.csv"), str(tmp_path / "items.csv"))
    rejected, empty = look(config).problems
    assert rejected == (
        "Bad rows of the click log must stay within data.reject_limit (1.000%). "
        "Received: 2 of 3 rows (66.667%): 1 no query, 1 item not in the catalogue, such as '9'."
    )
    assert empty.startswith("Every split must have a click (split.by: pair; ")
    (tmp_path / "items.csv").write_text("item_id,title\n1,t\n2,t\n2,t\n1,u\n")
    assert look(config).problems[0] == (
        "Bad rows of the catalogue must stay within data.reject_limit (1.000%). "
        "Received: 2 of 4 rows (50.000%): 2 item twice."
    )
    (tmp_path / "items.csv").write_text("item_id,title\n1,t\n")
    (tmp_path / "log.csv").write_text("query,item_id\n")
    assert look(config).problems == [
        f"The click log must have a good row. Received: no row in {tmp_path}/log.csv."
    ]


NAMED = {"data.timestamp_column": "time", "data.clicks_column": "clicks"}


def test_rejected_values_are_shown(tmp_path):
    moment = "99999999999999999"
    rows = [f"q{n},i1,{n},1" for n in range(20)] + [f"q,i1,{moment},1", "q,i1,now,1", "q,i1,,much"]
    (tmp_path / "log.csv").write_text("\n".join(["query,item_id,time,clicks", *rows]))
    log = {"data.click_log": f"{tmp_path}/log.csv", "data.catalogue": None}
    config = Config().replace_all({**log, **NO_TEXT, **NAMED})
    assert look(config).problems[0].partition("%): ")[2] == (
        f"1 time in the future, such as '{moment}', 1 timestamp is not a time, such as 'now', "
        "1 clicks is not a whole number, such as 'much'."
    )


def test_queries_count_where_they_were_clicked(tmp_path):
    config = guessed(tmp_path, "impressions")
    with (tmp_path / "clicks.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    clicked = {row["query"] for row in rows if row["clicked"] == "true"}
    assert len(clicked) < len({row["query"] for row in rows})
    expected = f"{len(clicked)} (text), with clicks in 25.0% of the rows"
    assert look(config).facts["queries"] == expected
    assert unused_columns(config) == ["position (whole number)"]
    header = ",".join(rows[0])
    lines = [",".join({**row, "clicked": "0"}.values()) for row in rows]
    (tmp_path / "clicks.csv").write_text("\n".join([header, *lines]))
    assert look(config).problems == [
        "Every split must have a click (split.by: pair; train 80%, calibrate 10%, test 10%), but "
        "none is in train and calibrate and test. Received rows with clicks: train 0, calibrate 0, "
        "test 0; the log has 0 queries with clicks: at least 10 are needed."
    ]


def test_what_is_valid_but_hardly_meant_is_noted(tmp_path):
    rows = [f"q{n % 30},i{n},{1000 * (n == 5)}" for n in range(200)]
    (tmp_path / "log.csv").write_text(
        "\n".join(["query,item_id,clicks", *rows, '"iphone,1,1\ntv 12",i1,1'])
    )
    assert look(guess_config(f"{tmp_path}/log.csv")).notes[:3] == [
        "item_id has 200 ids in 201 rows: it must name items, not rows",
        "one row has 1,000 of 1,001 clicks (clicks)",
        "the queries of 1 rows have line breaks, as an open quote makes them",
    ]


@pytest.mark.parametrize("name", ["clicks.csv", "clicks.jsonl"])
def test_large_files_are_estimated(tmp_path, monkeypatch, name):
    rows = 5_000
    header = "query,item_id,title\n" if name.endswith("csv") else ""
    row = "red {},i1,lamp\n" if header else '{{"query": "red {}", "item_id": "i1", "title": "t"}}\n'
    text = header + "".join(row.format(10_000 + n) for n in range(rows))
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(module, "MAX_BYTES", 10_000)
    monkeypatch.setattr(module, "MAX_BATCHES", 4)
    monkeypatch.setattr(read, "BLOCK", 8_192)
    config = guess_config(str(tmp_path / name))
    about, count, _ = look(config).facts["click log"].split()
    assert about == "about"
    assert int(count.replace(",", "")) == pytest.approx(rows, rel=0.15)

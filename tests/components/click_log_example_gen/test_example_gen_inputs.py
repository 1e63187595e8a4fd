"""Spans, versions and fingerprints of files; BigQuery without a network."""

import datetime
import decimal
import os

import apache_beam as beam
import pytest
from apache_beam.io.gcp.bigquery import ReadFromBigQuery

from components.click_log_example_gen import bigquery, inputs
from components.click_log_example_gen.driver import ClickLogExampleGenDriver
from components.click_log_example_gen.ingest import Ingest
from components.click_log_example_gen.settings import exec_properties, from_exec_properties
from pebr_tf.config import Config, Data
from pebr_tf.data.click_log import check_clicks
from pebr_tf.errors import UserError

pytestmark = pytest.mark.slow


def touched(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def resolved(folder, log, catalogue=None, span=None):
    data = Data(
        click_log=str(folder / log),
        catalogue=None if catalogue is None else str(folder / catalogue),
    )
    found = inputs.resolve(data, span)
    log, catalogue = (
        None if where is None else os.path.relpath(where, folder)
        for where in (found.click_log, found.catalogue)
    )
    return log, catalogue, found.span, found.version


def test_the_latest_span_and_its_latest_version(tmp_path):
    touched(tmp_path, "s9/v1/a.csv", "s10/v1/a.csv", "s10/v3/a.csv", "items/10/i.csv", "items/11/i")
    assert resolved(tmp_path, "s{SPAN}/v{VERSION}/*", "items/{SPAN}/*") == (
        "s10/v3/*",
        "items/10/*",
        10,
        3,
    )
    assert resolved(tmp_path, "s{SPAN}/v{VERSION}/*", "items.csv", span=9) == (
        "s9/v1/*",
        "items.csv",
        9,
        1,
    )


def test_dates_are_spans(tmp_path):
    touched(tmp_path, "2024-02-28/a.csv", "2024-02-29/a.csv")
    span = (datetime.date(2024, 2, 29) - datetime.date(1970, 1, 1)).days
    assert resolved(tmp_path, "{YYYY}-{MM}-{DD}/*.csv") == ("2024-02-29/*.csv", None, span, None)
    assert resolved(tmp_path, "{YYYY}-{MM}-{DD}/*.csv", span=span - 1)[0] == "2024-02-28/*.csv"


@pytest.mark.parametrize(
    ("log", "catalogue", "span", "expected"),
    [
        ("s{SPAN}/*", None, None, r"data\.click_log must match files of a span\. Received: .*"),
        ("s{SPAN}/*", None, 4, r"data\.click_log must match files of span 4\. Received: .*"),
        ("log.csv", None, 4, r"data\.click_log must have a place for the span .*log\.csv\."),
        ("log.csv", "s{SPAN}/*", None, r"data\.catalogue must have no span where .*"),
        ("v{VERSION}/*", None, None, r".* must be a valid pattern\. Received: Version spec .*"),
    ],
)
def test_spans_that_are_not_there(tmp_path, log, catalogue, span, expected):
    with pytest.raises(UserError, match=expected):
        resolved(tmp_path, log, catalogue, span)


def test_the_cache_key_holds_what_the_driver_finds(tmp_path):
    """Where it finds no file, the executor raises the error, so that TFX records a failed run."""
    config = Config().replace("data.click_log", f"{tmp_path}/s{{SPAN}}/*")
    given = exec_properties(config)

    def driven():
        return ClickLogExampleGenDriver(None).resolve_exec_properties(given, None, None)

    assert driven() == {**given, **inputs.NOT_FOUND}
    touched(tmp_path, "s7/a.csv")
    assert inputs.from_exec_properties(driven(), config.data) == inputs.resolve(config.data)
    first = driven()
    touched(tmp_path, "s7/b.csv")
    assert driven()["input_fingerprint"] != first["input_fingerprint"]


def test_any_change_of_a_file_changes_the_fingerprint(tmp_path):
    touched(tmp_path, "a.csv", "b.csv", "items.csv")
    data = Data(click_log=str(tmp_path / "*b.csv"), catalogue=str(tmp_path / "items.csv"))
    seen = [inputs.resolve(data).fingerprint]
    assert inputs.resolve(data).fingerprint == seen[0]
    touched(tmp_path, "a.csv")
    assert inputs.resolve(data).fingerprint == seen[0], "a file that is not read"
    os.utime(tmp_path / "b.csv", ns=(0, 10**6))
    seen.append(inputs.resolve(data).fingerprint)
    touched(tmp_path, "bb.csv")
    seen.append(inputs.resolve(data).fingerprint)
    (tmp_path / "bb.csv").rename(tmp_path / "ab.csv")
    seen.append(inputs.resolve(data).fingerprint)
    os.utime(tmp_path / "items.csv", ns=(0, 2 * 10**6))
    seen.append(inputs.resolve(data).fingerprint)
    assert len(set(seen)) == 5


QUERY = "bigquery://SELECT query, item_id FROM `shop-1.logs.log` WHERE day = @span_yyyymmdd_utc"


def test_a_table_of_bigquery_is_read_by_columns():
    reader = bigquery.reader("bigquery://shop-1.logs.clicks", ["query", "item_id"])
    assert reader.method == ReadFromBigQuery.Method.DIRECT_READ
    assert reader._kwargs["selected_fields"] == ["query", "item_id"]
    source = reader._kwargs["table"]
    assert source == "shop-1:logs.clicks"
    with pytest.raises(UserError, match=r"project\.dataset\.table or by a query\. Received: .*"):
        bigquery.reader("bigquery://clicks", [])


def test_a_query_of_bigquery_gets_its_span():
    data = Data(click_log=QUERY, catalogue=QUERY)
    found = inputs.resolve(data, 0)
    assert found.catalogue == found.click_log
    assert found.click_log.endswith("WHERE day = '19700101'")
    reader = bigquery.reader(found.click_log, ["query"])
    assert reader._kwargs["query"] == found.click_log.removeprefix("bigquery://")
    assert reader._kwargs["use_standard_sql"] is True
    assert inputs.resolve(data, 0).fingerprint != found.fingerprint
    with pytest.raises(UserError, match=r"data\.click_log must be read with a span\. Received: .*"):
        inputs.resolve(data)


def test_a_pipeline_on_bigquery_is_built_without_a_network(tmp_path):
    config = Config().replace_all(
        {
            "data.click_log": "bigquery://shop-1.logs.log",
            "data.catalogue": "bigquery://shop-1.logs.items",
        }
    )
    settings = from_exec_properties(exec_properties(config))
    pipeline = beam.Pipeline(argv=["--project=billed", "--temp_location=gs://bucket/temp"])
    Ingest(
        settings, ["bigquery://shop-1.logs.log"], ["bigquery://shop-1.logs.items"], str(tmp_path), 0
    ).build(pipeline)
    found = {}

    class Visitor(beam.pipeline.PipelineVisitor):
        def enter_composite_transform(self, node):
            if isinstance(node.transform, ReadFromBigQuery):
                found[node.full_label] = node.transform._kwargs

    pipeline.visit(Visitor())
    assert {
        label: (kwargs["table"], kwargs["selected_fields"]) for label, kwargs in found.items()
    } == {
        "ReadItems/BigQuery/Query": ("shop-1:logs.items", ["item_id", "title"]),
        "ReadClicks/BigQuery/Query": (
            "shop-1:logs.log",
            ["query", "item_id", "clicks", "timestamp"],
        ),
    }


def test_rows_of_bigquery_pass_the_same_checks():
    """They have no numbers that a user could look up."""
    time = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.timezone.utc)
    records = [
        {"query": "a", "item_id": 7, "clicks": decimal.Decimal("2"), "timestamp": time},
        {"query": None, "item_id": 8, "clicks": None, "timestamp": None},
    ]
    rows = bigquery.in_columns(records, "bigquery://shop-1.logs.t", list(records[0]))
    assert (rows.source, rows.numbered) == ("bigquery://shop-1.logs.t", False)
    kept = check_clicks(rows.batch, Data(), now=1_800_000_000)
    assert kept.columns.to_pylist() == [
        {"query": "a", "item_id": "7", "clicks": 2, "timestamp": 1_700_000_000}
    ]
    assert kept.rejected.reasons.tolist() == ["no query"]

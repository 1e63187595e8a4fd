"""The files: layout, the same rows in each format, the same bytes for a seed, all or nothing."""

import csv
import dataclasses
import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

import pebr_tf
from pebr_tf.data.synthetic import SyntheticSpec, click_chunks, clicks, write, writer
from pebr_tf.data.synthetic.text import catalogue_table

PARTS = ("catalogue", "queries", "truth", "clicks")
READERS = {"parquet": pq.read_table, "csv": pa.csv.read_csv, "jsonl": pa.json.read_json}


@pytest.fixture(autouse=True, scope="module")
def small_shards():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clicks, "CHUNK_CLICKS", 1_000)
        patch.setattr(writer, "CATALOGUE_SHARD_ITEMS", 125)
        patch.setattr(writer, "TRUTH_SHARD_PAIRS", 1_000)
        yield


@pytest.fixture(scope="module")
def written(small_shards, small_spec, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    for format in READERS:
        write(small_spec, folder / format, format)
    return folder


@pytest.fixture
def prepared(monkeypatch, small_world):
    """The world is there already: for tests of what happens while it is written."""
    monkeypatch.setattr(writer, "make_world", lambda spec: small_world)


def digests(directory):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def read_part(directory, part):
    description = json.loads((directory / "dataset.json").read_text())["files"][part]
    paths = sorted(directory.glob(description["path"]))
    assert len(paths) == description["shards"]
    read = READERS[directory.name]
    rows = [row for path in paths for row in read(path).to_pylist()]
    assert len(rows) == description["rows"]
    assert all(list(row) == description["columns"] for row in rows)
    return rows


def pairs(rows):
    """Truth with a row a query as truth with a row a pair."""
    return [{"query": row["query"], "item_id": item} for row in rows for item in row["item_ids"]]


def test_formats_hold_the_same_rows(written):
    for part in PARTS:
        parquet, table, lines = (read_part(written / format, part) for format in READERS)
        assert parquet == lines
        assert (pairs(parquet) if part == "truth" else parquet) == table


def test_files_hold_the_world(written, small_world, small_spec):
    out = written / "parquet"
    queries = small_world.queries
    assert read_part(out, "catalogue") == catalogue_table(small_world.catalogue, 0, 300).to_pylist()
    clicked = pa.concat_tables(click_chunks(small_world, small_spec))
    assert read_part(out, "clicks") == clicked.to_pylist()
    truth = read_part(out, "truth")
    assert [row["query"] for row in truth] == queries.texts.to_pylist()
    for query, row in enumerate(truth):
        assert row["item_ids"] == [f"i{item:07d}" for item in queries.relevant(query)]
    rows = read_part(out, "queries")
    assert [row["query"] for row in rows] == queries.texts.to_pylist()
    assert [row["relevant"] for row in rows] == queries.relevant_counts.tolist()
    assert [row["popularity"] for row in rows] == queries.popularity.tolist()


def test_the_description_holds_parameters_and_statistics(written, small_world, small_spec):
    description = json.loads((written / "csv" / "dataset.json").read_text())
    assert description["parameters"] == dataclasses.asdict(small_spec)
    assert (description["version"], description["format"]) == (pebr_tf.__version__, "csv")
    assert description["time"] == {"start": 1_730_505_600, "end": 1_735_689_600}
    assert description["files"]["clicks"]["path"] == "clicks/clicks-*-of-00003.csv"
    counts = sorted(small_world.queries.relevant_counts.tolist())
    sampler = clicks.ClickSampler(small_world, small_spec)
    noise = sum(int(sampler.chunk(number).is_noise.sum()) for number in range(3))
    relevant = {"pairs": sum(counts), **{f"p{n}": counts[7 * n - 1] for n in (10, 50, 90)}}
    expected = {f"relevant_{name}": value for name, value in relevant.items()}
    expected |= {"items": 300, "queries": 700, "clicks": 2_300, "relevant_max": counts[-1]}
    expected["breadth_correlation"] = small_world.breadth_correlation
    assert description["statistics"] == {**expected, "noise_share": noise / 2_300}


def test_a_seed_gives_the_same_bytes_whatever_the_progress(written, tmp_path, small_spec):
    calls: list[tuple[str, int, int]] = []
    summary = write(small_spec, tmp_path / "again", progress=lambda *call: calls.append(call))
    write(dataclasses.replace(small_spec, seed=4), tmp_path / "other")
    one, two, other = map(digests, (written / "parquet", tmp_path / "again", tmp_path / "other"))
    assert one == two
    common = one.keys() & other.keys()
    assert any(name.startswith("clicks/") for name in common)
    assert all(one[name] != other[name] for name in common)
    description = json.loads((tmp_path / "again" / "dataset.json").read_text())
    assert description["statistics"] == dataclasses.asdict(summary)
    parts = ["world", "catalogue", "truth", "clicks"]
    assert list(dict.fromkeys(part for part, _, _ in calls)) == parts
    for part in parts:
        mine = [(done, total) for name, done, total in calls if name == part]
        assert mine == sorted(mine)
        assert mine[-1][0] == mine[-1][1]
    assert [done for part, done, _ in calls if part == "clicks"] == [1_000, 2_000, 2_300]


@pytest.mark.parametrize(("items", "queries", "number"), [(100, 1, 1), (101, 7, 2)])
def test_tiny_sizes(tmp_path, items, queries, number):
    spec = SyntheticSpec(items=items, queries=queries, clicks=number)
    for format in READERS:
        out = tmp_path / format
        write(spec, out, format)
        assert len(read_part(out, "catalogue")) == items
        assert len(read_part(out, "queries")) == queries
        assert len(read_part(out, "clicks")) == number
        assert read_part(out, "truth")
        statistics = json.loads((out / "dataset.json").read_text())["statistics"]
        # A single query has no correlation.
        assert (statistics["breadth_correlation"] == 0.0) == (queries == 1)


@pytest.mark.parametrize("survivors", [0, 3, 9])
def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch, prepared, small_spec, survivors):
    done = fail_after(survivors, KeyboardInterrupt("stop"), monkeypatch)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        write(small_spec, tmp_path / "out")
    assert len(done) == survivors
    assert not list(tmp_path.iterdir())


def fail_after(number, error, monkeypatch):
    written: list[Path] = []
    write_table = writer.write_table

    def failing(table, path):
        if len(written) == number:
            raise error
        write_table(table, path)
        written.append(path)

    monkeypatch.setattr(writer, "write_table", failing)
    return written


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch, prepared, small_spec, rejection):
    fail_after(2, OSError(28, "No space left on device"), monkeypatch)
    out = tmp_path / "out"
    assert rejection(write, small_spec, out) == (
        f"--out must be a directory that can be written. Received: {out} (No space left on device)."
    )
    assert not list(tmp_path.iterdir())


def test_a_closed_pipe_is_not_reported_as_a_bad_directory(tmp_path, prepared, small_spec):
    def progress(part, done, total):
        raise BrokenPipeError("closed")

    with pytest.raises(BrokenPipeError, match="closed"):
        write(small_spec, tmp_path / "out", progress=progress)
    assert not list(tmp_path.iterdir())


def test_a_directory_in_use_or_an_unknown_format_is_rejected(tmp_path, small_spec, rejection):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    text = f"--out must be a new or an empty directory. Received: {out}."
    assert rejection(write, small_spec, out) == text
    text = "--format must be one of parquet, csv, jsonl. Received: 'xml'."
    assert rejection(write, small_spec, tmp_path / "other", "xml") == text
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine.txt"]


HARD = [
    *("plain", 'a "quoted" word', "back\\slash", "line\nbreak", "tab\t\x01", "naïve 電話", ""),
    "".join(map(chr, range(32))).replace("\x00", "").replace("\r", ""),
]


def test_files_hold_the_same_values(tmp_path):
    table = pa.table({"query": HARD, "share": [n / 7 for n in range(8)], "n": range(8)})
    for ending in ("parquet", "csv", "jsonl"):
        writer.write_table(table, tmp_path / f"table.{ending}")
    rows = table.to_pylist()
    assert pq.read_table(tmp_path / "table.parquet").to_pylist() == rows
    with (tmp_path / "table.jsonl").open(encoding="utf-8", newline="\n") as file:
        assert [json.loads(line) for line in file] == rows
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        read = [
            {"query": row["query"], "share": float(row["share"]), "n": int(row["n"])}
            for row in csv.DictReader(file)
        ]
    assert read == rows


INTEGER = "an integer from 100 to 50000000"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("items", 5, f"{INTEGER}. Received: 5."),
        ("items", 50_000_001, f"{INTEGER}. Received: 50000001."),
        ("items", "200", f"{INTEGER}. Received: '200'."),
        ("queries", 0, "an integer from 1 to 10000000. Received: 0."),
        ("clicks", 0, "an integer from 1 to 10000000000. Received: 0."),
        ("seed", -1, "an integer from 0 to 9223372036854775807. Received: -1."),
        ("noise", 1.0, "a number from 0 to below 1. Received: 1.0."),
        ("noise", float("nan"), "a number from 0 to below 1. Received: nan."),
        ("noise", -0.1, "a number from 0 to below 1. Received: -0.1."),
    ],
)
def test_a_bad_value_is_named(name, value, text, rejection):
    assert rejection(SyntheticSpec, **{name: value}) == f"--{name} must be {text}"

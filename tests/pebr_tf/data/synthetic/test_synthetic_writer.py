"""The files: layout, the same rows in each format, the same bytes for a seed, all or nothing."""

import csv
import dataclasses
import hashlib
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import pebr_tf
from pebr_tf.data.synthetic import SyntheticSpec, World, click_chunks, clicks, write, writer
from pebr_tf.data.synthetic.text import catalogue_table
from pebr_tf.errors import UserError

FORMATS = ("parquet", "csv", "jsonl")
PARTS = ("catalogue", "queries", "truth", "clicks")
NUMBERS = {"clicks": int, "timestamp": int, "relevant": int, "popularity": float}
SPEC = SyntheticSpec(items=600, queries=1_500, clicks=2_300, seed=3, noise=0.1)

Rows = list[dict[str, object]]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clicks, "CHUNK_CLICKS", 1_000)
    monkeypatch.setattr(writer, "CATALOGUE_SHARD_ITEMS", 250)
    monkeypatch.setattr(writer, "TRUTH_SHARD_PAIRS", 2_000)


def digests(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def read_file(path: Path) -> Rows:
    if path.suffix == ".parquet":
        rows: Rows = pa.parquet.read_table(path).to_pylist()
        return rows
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in file]
        return [
            {name: NUMBERS.get(name, str)(text) for name, text in row.items()}
            for row in csv.DictReader(file)
        ]


def read_part(directory: Path, part: str) -> Rows:
    description = json.loads((directory / "dataset.json").read_text())["files"][part]
    paths = sorted(directory.glob(description["path"]))
    assert len(paths) == description["shards"]
    rows = [row for path in paths for row in read_file(path)]
    assert len(rows) == description["rows"]
    assert all(list(row) == description["columns"] for row in rows)
    return rows


def pairs(rows: Rows) -> Rows:
    """Truth with a row a query as truth with a row a pair."""
    return [
        {"query": row["query"], "item_id": item}
        for row in rows
        for item in row["item_ids"]  # type: ignore[attr-defined]
    ]


def test_formats_hold_the_same_rows(tmp_path: Path) -> None:
    for format in FORMATS:
        write(SPEC, tmp_path / format, format)
    for part in PARTS:
        parquet, table, lines = (read_part(tmp_path / format, part) for format in FORMATS)
        assert parquet == lines
        assert (pairs(parquet) if part == "truth" else parquet) == table


def test_files_hold_the_world(tmp_path: Path, small_world: World) -> None:
    write(SPEC, tmp_path / "out")
    assert read_part(tmp_path / "out", "catalogue") == (
        catalogue_table(small_world.catalogue, 0, 600).to_pylist()
    )
    assert read_part(tmp_path / "out", "clicks") == (
        pa.concat_tables(click_chunks(small_world, SPEC)).to_pylist()
    )
    truth = read_part(tmp_path / "out", "truth")
    assert [row["query"] for row in truth] == small_world.queries.texts.to_pylist()
    for query, row in enumerate(truth):
        assert row["item_ids"] == [f"i{item:07d}" for item in small_world.queries.relevant(query)]
    queries = read_part(tmp_path / "out", "queries")
    assert [row["query"] for row in queries] == small_world.queries.texts.to_pylist()
    assert [row["relevant"] for row in queries] == small_world.queries.relevant_counts.tolist()
    assert [row["popularity"] for row in queries] == small_world.queries.popularity.tolist()


def test_layout(tmp_path: Path) -> None:
    write(SPEC, tmp_path / "out")
    truth = len(list((tmp_path / "out" / "truth").iterdir()))
    assert truth > 1
    assert sorted(digests(tmp_path / "out")) == sorted(
        [
            "dataset.json",
            "queries.parquet",
            *(f"catalogue/catalogue-{n:05d}-of-00003.parquet" for n in range(3)),
            *(f"clicks/clicks-{n:05d}-of-00003.parquet" for n in range(3)),
            *(f"truth/truth-{n:05d}-of-{truth:05d}.parquet" for n in range(truth)),
        ]
    )


def test_dataset_describes_itself(tmp_path: Path) -> None:
    summary = write(SPEC, tmp_path / "out", "csv")
    description = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert description["parameters"] == dataclasses.asdict(SPEC)
    assert description["version"] == pebr_tf.__version__
    assert description["format"] == "csv"
    assert description["time"] == {"start": 1_730_505_600, "end": 1_735_689_600}
    assert description["statistics"] == dataclasses.asdict(summary)
    assert description["files"]["clicks"] == {
        "path": "clicks/clicks-*-of-00003.csv",
        "shards": 3,
        "rows": 2_300,
        "columns": ["query", "item_id", "clicks", "timestamp"],
    }


def test_summary_counts_what_was_written(tmp_path: Path, small_world: World) -> None:
    summary = write(SPEC, tmp_path / "out")
    counts = sorted(small_world.queries.relevant_counts.tolist())
    assert (summary.items, summary.queries, summary.clicks) == (600, 1_500, 2_300)
    assert summary.relevant_pairs == sum(counts)
    assert summary.relevant_p10 == counts[149]
    assert summary.relevant_p50 == counts[749]
    assert summary.relevant_p90 == counts[1_349]
    assert summary.relevant_max == counts[-1]
    assert summary.breadth_correlation == small_world.breadth_correlation
    sampler = clicks.ClickSampler(small_world, SPEC)
    noise = sum(int(sampler.chunk(number).is_noise.sum()) for number in range(3))
    assert summary.noise_share == noise / 2_300


@pytest.mark.parametrize("format", FORMATS)
def test_a_seed_gives_the_same_bytes(tmp_path: Path, format: str) -> None:
    for name in ("one", "two"):
        write(SPEC, tmp_path / name, format)
    write(dataclasses.replace(SPEC, seed=4), tmp_path / "other", format)
    one, two, other = (digests(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    common = one.keys() & other.keys()
    assert any(name.startswith("clicks/") for name in common)
    assert all(one[name] != other[name] for name in common)


@pytest.mark.parametrize(("items", "queries", "number"), [(100, 1, 1), (101, 7, 2)])
@pytest.mark.parametrize("format", FORMATS)
def test_tiny_sizes(tmp_path: Path, items: int, queries: int, number: int, format: str) -> None:
    spec = SyntheticSpec(items=items, queries=queries, clicks=number)
    write(spec, tmp_path / "out", format)
    assert len(read_part(tmp_path / "out", "catalogue")) == items
    assert len(read_part(tmp_path / "out", "queries")) == queries
    assert len(read_part(tmp_path / "out", "clicks")) == number
    assert read_part(tmp_path / "out", "truth")


def test_progress_goes_through_the_parts(tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    write(SPEC, tmp_path / "out", progress=lambda *call: calls.append(call))
    assert list(dict.fromkeys(part for part, _, _ in calls)) == [
        "world",
        "catalogue",
        "truth",
        "clicks",
    ]
    for part in ("world", "catalogue", "truth", "clicks"):
        mine = [(done, total) for name, done, total in calls if name == part]
        assert mine == sorted(mine)
        assert mine[-1][0] == mine[-1][1]
    assert [done for part, done, _ in calls if part == "clicks"] == [1_000, 2_000, 2_300]


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt("stop")])
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("survivors", [0, 3, 9])
def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    exists: bool,
    survivors: int,
) -> None:
    written = fail_after(survivors, error, monkeypatch)
    if exists:
        (tmp_path / "out").mkdir()
    with pytest.raises(type(error), match=str(error)):
        write(SPEC, tmp_path / "out")
    assert len(written) == survivors
    assert [path.name for path in tmp_path.rglob("*")] == (["out"] if exists else [])


def fail_after(number: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    written: list[Path] = []
    write_table = writer.write_table

    def failing(table: pa.Table, path: Path) -> None:
        if len(written) == number:
            raise error
        write_table(table, path)
        written.append(path)

    monkeypatch.setattr(writer, "write_table", failing)
    return written


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_after(2, OSError(28, "No space left on device"), monkeypatch)
    out = tmp_path / "out"
    text = (
        f"--out must be a directory that can be written. Received: {out} (No space left on device)."
    )
    with pytest.raises(UserError, match=re.escape(text)):
        write(SPEC, out)
    assert not list(tmp_path.iterdir())


def test_a_closed_pipe_is_not_the_directory_s_fault(tmp_path: Path) -> None:
    def progress(part: str, done: int, total: int) -> None:
        raise BrokenPipeError("closed")

    with pytest.raises(BrokenPipeError, match="closed"):
        write(SPEC, tmp_path / "out", progress=progress)
    assert not list(tmp_path.iterdir())


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    text = f"--out must be a new or an empty directory. Received: {out}."
    with pytest.raises(UserError, match=re.escape(text)):
        write(SPEC, out)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine.txt"]


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(SPEC, tmp_path / "out")
    assert (tmp_path / "out" / "dataset.json").is_file()


def test_the_current_directory_can_be_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write(SPEC, Path("."))
    assert (tmp_path / "here" / "dataset.json").is_file()


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    text = "--format must be one of parquet, csv, jsonl. Received: 'xml'."
    with pytest.raises(UserError, match=re.escape(text)):
        write(SPEC, tmp_path / "out", "xml")
    assert not list(tmp_path.iterdir())


def test_a_query_never_spans_two_truth_shards(tmp_path: Path) -> None:
    write(SPEC, tmp_path / "out", "csv")
    owners = [
        {row["query"] for row in read_file(path)}
        for path in sorted((tmp_path / "out" / "truth").iterdir())
    ]
    assert len(owners) > 1
    assert sum(len(owner) for owner in owners) == len(set().union(*owners)) == 1_500


def test_truth_shards_begin_where_the_pairs_pass_a_multiple(
    tmp_path: Path, small_world: World
) -> None:
    write(SPEC, tmp_path / "out")
    texts = small_world.queries.texts.to_pylist()
    window = dict(zip(texts, small_world.queries.row_splits[:-1] // 2_000, strict=True))
    windows = [
        {window[row["query"]] for row in read_file(path)}
        for path in sorted((tmp_path / "out" / "truth").iterdir())
    ]
    assert all(len(own) == 1 for own in windows)
    assert len(set().union(*windows)) == len(windows)

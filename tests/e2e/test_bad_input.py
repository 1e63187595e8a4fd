"""What a user can get wrong, at the level of the command: one sentence, exit code 2, no remains."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import RUN, SOURCES, World
from pebr_process import Finished, edited, failing_at, pebr
from pyarrow import parquet

pytestmark = pytest.mark.slow

LOG = "data/clicks.tsv"
Fresh = Callable[[], World]


def refused(done: Finished) -> str:
    """The one sentence of a run that a user has to mend something for."""
    assert done.code == 2, done.err
    (line,) = [text for text in done.err.splitlines() if not text.startswith("  training")]
    assert line.startswith("pebr: ")
    assert "Received" in line
    return line.removeprefix("pebr: ")


def remains(world: World) -> list[Path]:
    """Files of artifacts, but for the dead letters, which the user needs."""
    files = (path for path in (world.folder / "run/artifacts").rglob("*") if path.is_file())
    return [path for path in files if ".refused" not in str(path)]


def _write(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content, encoding="utf-8")


def _other_types(path: Path) -> None:
    table = pa.table({"query": [[1], [2]], "item_id": [b"e1", b"e2"]})
    parquet.write_table(table, path.with_suffix(".parquet"))


def _cut_short(path: Path) -> None:
    whole = gzip.compress(path.read_bytes())
    path.with_suffix(".tsv.gz").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    ("log", "damage", "sentence"),
    [
        (LOG, Path.unlink, "data.click_log must"),
        (LOG, _write(""), "clicks.tsv must"),
        (LOG, _write("query\titem_id\n"), "The click log must have a good row."),
        (LOG, _write("query,item_id\nphone,e1\n"), "query"),
        ("data/clicks.tsv.gz", _cut_short, "clicks.tsv.gz"),
        ("data/clicks.parquet", _other_types, "Bad rows of the click log must"),
        (LOG, _write("query\titem_id\n" + "phone\te1\n" * 50), "Every split must have a click"),
        (
            LOG,
            _write("query\titem_id\n" + "".join(f"phone\te{n}\n" for n in range(99))),
            "Every split must have a click",
        ),
    ],
    ids=[
        *("missing", "empty", "header_only", "wrong_delimiter", "truncated_gzip", "other_types"),
        *("one_pair", "one_query"),
    ],
)
def test_a_click_log_that_cannot_be_used(
    fresh: Fresh, log: str, damage: Callable[[Path], None], sentence: str
) -> None:
    world = fresh()
    world.edit_config(LOG, log)
    damage(world.folder / LOG)
    done = pebr(world.folder, *RUN)
    assert sentence in refused(done)
    assert done.states() == {}
    assert remains(world) == []
    assert not (world.folder / "releases").exists()


def test_a_config_that_is_wrong(fresh: Fresh) -> None:
    world = fresh()
    world.edit_config("steps: 100", "steps: many")
    done = pebr(world.folder, *RUN)
    assert "pebr.yaml: training.steps must be" in refused(done)
    assert not (world.folder / "run").exists()


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/file")


WRITES = {
    "ExampleValidator": failing_at("components.example_validator.executor", "_write", FULL),
    "IndexBuilder": failing_at("components.index_builder.executor", "write_artifact", FULL),
    "Pusher": failing_at("serving.manifest", "checksums", FULL),
}


@pytest.mark.parametrize("component", WRITES)
def test_a_full_disk(world: World, component: str) -> None:
    before, releases = set(remains(world)), world.releases
    hooks = [edited(SOURCES[component]), WRITES[component]]
    done = pebr(world.folder, *RUN, "--until", component, hooks=hooks)
    assert refused(done) == "run/file must have space. Received: No space left on device."
    # The validator, which always runs, has accepted the data once more.
    new = {path for path in remains(world) if "ExampleValidator" not in str(path)} - before
    assert not new
    assert world.releases == releases
    assert not list((world.folder / "releases").glob(".*"))

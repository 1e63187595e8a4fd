"""TFX's file functions on s3:// and minio://, which are read through pyarrow."""

import pytest
from pyarrow import fs
from tfx.dsl.io import fileio

from components import s3_files
from components.click_log_example_gen import inputs
from pebr_tf import storage
from pebr_tf.config import Data


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A folder that stands for both stores; returns a function that writes a file."""
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(storage, "file_system_of", lambda scheme: store)

    def write(name, text="x"):
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    return write


@pytest.mark.parametrize("scheme", ["s3", "minio"])
def test_patterns_match_level_by_level(bucket, scheme):
    for name in ("a/1/x.csv", "a/2/x.csv", "a/2/y.csv", "a/2/deep/x.csv", "b/x.csv", "a/[1].csv"):
        bucket(name)
    at = f"{scheme}://shop"
    expected = {
        "a/*/x.csv": ["a/1/x.csv", "a/2/x.csv"],
        "a/2/*": ["a/2/deep", "a/2/x.csv", "a/2/y.csv"],
        "a/?/[xy].csv": ["a/1/x.csv", "a/2/x.csv", "a/2/y.csv"],
        "*/x.csv": ["b/x.csv"],
        "a/1/x.csv": ["a/1/x.csv"],
        "a//1/*.csv": ["a/1/x.csv"],
        "a/3/x.csv": [],
        "c/*": [],
    }
    for pattern, names in expected.items():
        assert fileio.glob(f"{at}/{pattern}") == [f"{at}/{name}" for name in names]


def test_files_and_folders(bucket):
    bucket("a/x.csv", "hello")
    assert fileio.exists("s3://shop/a")
    assert fileio.isdir("s3://shop/a")
    assert not fileio.isdir("s3://shop/a/x.csv")
    assert not fileio.exists("s3://shop/b")
    assert fileio.stat("s3://shop/a/x.csv").length == 5
    with fileio.open("s3://shop/a/x.csv", "rb") as file:
        assert file.read() == b"hello"
    with pytest.raises(NotImplementedError, match="wb"):
        fileio.open("s3://shop/a/y.csv", "wb")
    assert not s3_files.is_s3("gs://shop/a")


def test_the_latest_span_of_a_bucket(bucket, tmp_path):
    for name in ("logs/7/a.csv", "logs/9/a.csv", "logs/9/.hidden", "items/9.csv"):
        bucket(name)
    data = Data(click_log="s3://shop/logs/{SPAN}/*", catalogue="s3://shop/items/{SPAN}.csv")
    first = inputs.resolve(data)
    assert (first.click_log, first.catalogue) == ("s3://shop/logs/9/*", "s3://shop/items/9.csv")
    assert first.span == 9
    assert inputs.sources("data.click_log", first.click_log) == ["s3://shop/logs/9/a.csv"]
    assert inputs.resolve(data).fingerprint == first.fingerprint
    bucket("logs/9/a.csv", "longer")
    assert inputs.resolve(data).fingerprint != first.fingerprint
    with inputs.source_of("s3://shop/logs/9/a.csv", "csv").open() as file:
        assert file.read() == b"longer"

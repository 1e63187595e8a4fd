"""Folders of releases for the tests of the service."""

import shutil
from dataclasses import replace

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from evaluation_example import with_queries

from serving import retriever
from serving.encoder import EmbeddedEncoder
from serving.push import push

_encoders = {}


def shared_encoder(directory):
    """An encoder that is loaded once: most releases of these tests have the same query model."""
    content = (directory / "saved_model.pb").read_bytes()
    return _encoders.get(content) or _encoders.setdefault(content, EmbeddedEncoder(directory))


@pytest.fixture(scope="module", autouse=True)
def _shared_encoders():
    """Encoders are shared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retriever, "EmbeddedEncoder", shared_encoder)
        yield


@pytest.fixture(scope="session")
def two_versions(tmp_path_factory, parts):
    """A folder with two releases, titles in small letters and in capitals; do not write to it."""
    folder = tmp_path_factory.mktemp("two")
    evaluation = tmp_path_factory.mktemp("evaluation")
    with_queries("red phone", "laptop bag", "cable").save(evaluation)
    (evaluation / "report.html").write_text("<p>report</p>")
    parts = replace(parts, evaluation=evaluation)
    push(folder, parts)
    other = tmp_path_factory.mktemp("other") / "index"
    shutil.copytree(parts.index, other)
    table = pq.read_table(other / "payload.parquet")
    titles = pc.utf8_upper(table.column("title"))
    table = table.set_column(table.column_names.index("title"), "title", titles)
    pq.write_table(table, other / "payload.parquet")
    push(folder, replace(parts, index=other))
    return folder


@pytest.fixture
def root(tmp_path, two_versions):
    """The same, to write to."""
    shutil.copytree(two_versions, tmp_path / "releases", symlinks=True)
    return tmp_path / "releases"

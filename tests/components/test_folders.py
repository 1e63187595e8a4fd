"""Artifacts as folders: whole or not at all, here and elsewhere."""

import pytest
import tensorflow as tf
from tfx.dsl.io import filesystem_registry
from tfx.dsl.io.plugins.tensorflow_gfile import TensorflowFilesystem

from components.folders import local_folder, published_folder

pytestmark = pytest.mark.slow


class MemoryFilesystem(TensorflowFilesystem):
    SUPPORTED_SCHEMES = ["ram://"]  # noqa: RUF012


@pytest.fixture
def remote(memory_store):
    filesystem_registry.DEFAULT_FILESYSTEM_REGISTRY.register(MemoryFilesystem, priority=1)
    uri = "ram://bucket/index/7"
    tf.io.gfile.makedirs(uri)
    return uri


def fill(folder):
    (folder / "index").mkdir()
    (folder / "index" / "index.json").write_text("{}")
    (folder / "ids.npy").write_bytes(b"\x00\xff")


def test_a_local_artifact_is_renamed_into_its_place(tmp_path):
    uri = tmp_path / "index" / "7"
    uri.mkdir(parents=True)
    (uri / "left_over").write_text("of a killed try")
    (tmp_path / "index" / "7.work").mkdir()
    (tmp_path / "index" / "7.work" / "half").write_text("of a killed try")
    with published_folder(str(uri)) as folder:
        fill(folder)
        assert [path.name for path in uri.iterdir()] == ["left_over"]
    assert sorted(path.name for path in uri.iterdir()) == ["ids.npy", "index"]
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["7"]


def test_a_failed_artifact_leaves_nothing(tmp_path):
    uri = tmp_path / "7"
    uri.mkdir()

    def fail():
        with published_folder(str(uri)) as folder:
            fill(folder)
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["7"]
    assert not list(uri.iterdir())


def test_a_remote_artifact_is_copied_whole_and_read_back(remote):
    tf.io.gfile.GFile(f"{remote}/left_over", "w").write("of a killed try")
    with published_folder(remote) as folder:
        fill(folder)
    assert sorted(tf.io.gfile.listdir(remote)) == ["ids.npy", "index"]
    assert tf.io.gfile.GFile(f"{remote}/ids.npy", "rb").read() == b"\x00\xff"
    with local_folder(remote) as copy:
        assert (copy / "index" / "index.json").read_text() == "{}"
        assert (copy / "ids.npy").read_bytes() == b"\x00\xff"
    assert not copy.exists()

"""Files anywhere: local ones, a store in memory, and what pyarrow says of a real address."""

import gzip
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from pyarrow.fs import GcsFileSystem, S3FileSystem

from pebr_tf import storage
from pebr_tf.errors import UserError

REMOTE = "ram://bucket/folder"


@pytest.fixture(params=["local", "remote"])
def folder(request, tmp_path, memory_store):
    return str(tmp_path / "folder") if request.param == "local" else REMOTE


def test_a_file_is_written_replaced_and_read(folder):
    path = f"{folder}/deep/file"
    assert not storage.exists(path)
    with pytest.raises(FileNotFoundError):
        storage.read_bytes(path)
    for content in (b"first, and longer", b"\x00second", b""):
        storage.write_bytes(path, content)
        assert storage.read_bytes(path) == content
    assert storage.exists(path)
    assert storage.exists(folder)
    assert storage.names(folder) == ["deep"]
    assert storage.names(f"{folder}/deep/") == ["file"]
    assert storage.names(f"{folder}/none") == []


def test_a_file_larger_than_a_block(folder, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_BYTES", 4)
    storage.write_bytes(f"{folder}/a", b"0123456789")
    storage.copy(f"{folder}/a", f"{folder}/b")
    assert storage.read_bytes(f"{folder}/b") == b"0123456789"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder_is_copied_both_ways(folder, tmp_path, slash):
    # Nothing is compressed or decompressed on the way.
    files = {
        "a": b"1",
        "deep/b": b"2",
        "deep/er/c": b"3",
        "d.gz": gzip.compress(b"4"),
        "e.gz": b"5",
    }
    for name, content in files.items():
        storage.write_bytes(f"{folder}/{name}", content)
    storage.copy_folder(f"{folder}{slash}", tmp_path / "here")
    storage.copy_folder(tmp_path / "here", f"{folder}/again")
    for name, content in files.items():
        assert (tmp_path / "here" / name).read_bytes() == content
        assert storage.read_bytes(f"{folder}/again/{name}") == content
    storage.copy_folder(f"{folder}/none", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_relative_folder_is_copied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage.write_bytes("run/models/5/file", b"1")
    storage.copy_folder("run/models/5", "copy")
    assert storage.read_bytes("copy/file") == b"1"


def test_a_local_file_that_fails_leaves_the_old_one(tmp_path, memory_store, rejection):
    storage.write_bytes(tmp_path / "file", b"old")
    storage.write_bytes(f"{REMOTE}/file", b"new")

    def fail(use, path):
        raise OSError("gone\naway.")

    memory_store.before = fail
    sentence = f"{REMOTE}/file must be within reach. Received: gone away."
    assert rejection(storage.copy, f"{REMOTE}/file", tmp_path / "file") == sentence
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
    # Errors of the local disk are those of Python.
    with pytest.raises(NotADirectoryError):
        storage.read_bytes(tmp_path / "file" / "beyond")


@pytest.mark.parametrize("source", ["local", REMOTE])
def test_a_missing_source_leaves_no_object(memory_store, tmp_path, source):
    missing = f"{tmp_path if source == 'local' else source}/missing"
    with pytest.raises(FileNotFoundError, match="missing"):
        storage.copy(missing, f"{REMOTE}/target")
    assert not storage.exists(f"{REMOTE}/target")


class Break:
    """A stream whose second read fails."""

    def __init__(self):
        self.left = [b"0123"]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.left = []

    def read(self, size):
        if not self.left:
            raise OSError("gone away")
        return self.left.pop()


@pytest.mark.parametrize("source", ["file", f"{REMOTE}/source"])
@pytest.mark.parametrize("may_delete", [True, False])
def test_a_source_that_breaks_off_leaves_no_part(memory_store, monkeypatch, source, may_delete):
    def before(use, path):
        if use == "delete" and not may_delete:
            raise OSError("forbidden")

    memory_store.before = before
    place = storage.file_system_and_path

    def broken(path):
        file_system, inner = place(path)
        if str(path) == source:
            file_system = SimpleNamespace(open_input_stream=lambda *_, **__: Break())
        return file_system, inner

    monkeypatch.setattr(storage, "file_system_and_path", broken)
    error, sentence = (
        (OSError, "gone away")
        if source == "file"
        else (UserError, f"{source} must be within reach. Received: gone away.")
    )
    with pytest.raises(error) as caught:
        storage.copy(source, f"{REMOTE}/target")
    assert str(caught.value) == sentence
    # Without the permission to delete, the part remains.
    assert storage.exists(f"{REMOTE}/target") == (not may_delete)


def test_a_missing_bucket_is_no_missing_file(memory_store, rejection):
    def missing(use, path):
        raise FileNotFoundError("no bucket")

    memory_store.before = missing
    sentence = f"{REMOTE}/a must be within reach. Received: no bucket."
    assert rejection(storage.write_bytes, f"{REMOTE}/a", b"") == sentence


@pytest.fixture
def file_system_of():
    """Without the stores that were made for other variables."""
    storage.file_system_of.cache_clear()
    yield storage.file_system_of
    storage.file_system_of.cache_clear()


def test_each_scheme_has_its_file_system(file_system_of, monkeypatch, rejection):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/")
    expected = S3FileSystem(endpoint_override="127.0.0.1:9000", scheme="http")
    assert file_system_of("s3") == file_system_of("minio") == expected
    assert file_system_of("s3") != S3FileSystem()
    file_system_of.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "store:9000")
    expected = S3FileSystem(endpoint_override="store:9000", scheme="https")
    assert file_system_of("s3") == expected
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://store/minio")
    file_system_of.cache_clear()
    assert rejection(file_system_of, "s3") == (
        "AWS_ENDPOINT_URL must be a host and a port. Received: https://store/minio."
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", "")
    assert file_system_of("s3") == S3FileSystem()
    assert isinstance(file_system_of("gs"), GcsFileSystem)
    for scheme, sentence in {
        "minio": (
            "AWS_ENDPOINT_URL must be the address of the server for minio:// paths. Received: none."
        ),
        "ftp": ("a path must be local or begin with gs://, s3:// or minio://. Received: ftp://..."),
    }.items():
        assert rejection(storage.names, f"{scheme}://bucket/folder") == sentence


class Forbidden(BaseHTTPRequestHandler):
    """Answers every request of S3 with 403."""

    def _refuse(self):
        self.server.requests.append((self.command, self.path.partition("?")[0]))
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = _refuse

    def log_message(self, *arguments):
        """Prints nothing."""


def test_an_s3_server_that_refuses_is_one_sentence(file_system_of, monkeypatch, rejection):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Forbidden)
    server.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a-key-of-ordinary-length")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    try:
        for use in (storage.read_bytes, storage.names, lambda path: storage.write_bytes(path, b"")):
            path = "minio://bucket/folder/file"
            sentence = rejection(use, path)
            assert sentence.startswith(f"{path} must be within reach. Received: ")
            assert "\n" not in sentence
    finally:
        server.shutdown()
        server.server_close()
    assert ("HEAD", "/bucket/folder/file") in server.requests

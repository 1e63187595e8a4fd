"""Files wherever they are: local paths, gs://, s3:// and minio://, through pyarrow's file systems.

A file appears whole or not at all: a local one is renamed into its place, and an object store shows
a file once it is complete; the part that a failure leaves of a large file is deleted. An object
store that fails is a UserError with the path; a local file that fails is an OSError. To read a
missing file is a FileNotFoundError in both.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pebr_tf.environment import s3_endpoint
from pebr_tf.errors import UserError, one_line
from pebr_tf.files import is_remote, replacing_file

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

# Few requests for a large file, and little memory.
BLOCK_BYTES = 16 * 2**20
# Google's client retries for a quarter of an hour by itself.
RETRY_LIMIT = datetime.timedelta(minutes=1)


def read_bytes(path: str | Path) -> bytes:
    return b"".join(_blocks(path))


def write_bytes(path: str | Path, content: bytes) -> None:
    _write(path, [content])


def copy(source: str | Path, target: str | Path) -> None:
    _write(target, _blocks(source))


def copy_folder(source: str | Path, target: str | Path) -> None:
    """Copies the files of a folder and of the folders in it, one after the other."""
    root = str(source).rstrip("/")
    inside = len(file_system_and_path(root)[1]) + 1
    for info in _listed(root, recursive=True):
        if info.is_file:
            name = info.path[inside:]
            copy(f"{root}/{name}", f"{target}/{name}")


def names(folder: str | Path) -> list[str]:
    """The names of the files and folders in a folder, sorted; none if there is no such folder."""
    return sorted(info.base_name for info in _listed(folder, recursive=False))


def exists(path: str | Path) -> bool:
    file_system, inner = file_system_and_path(path)
    with _store_errors(path):
        return bool(file_system.get_file_info(inner).type)


def _listed(folder: str | Path, recursive: bool) -> list[FileInfo]:
    from pyarrow.fs import FileSelector

    file_system, inner = file_system_and_path(folder)
    selector = FileSelector(inner, allow_not_found=True, recursive=recursive)
    with _store_errors(folder):
        return list(file_system.get_file_info(selector))


def _blocks(path: str | Path) -> Iterator[bytes]:
    with _store_errors(path, missing=True):
        file_system, inner = file_system_and_path(path)
        # Without this argument, Arrow decompresses a file whose name ends in .gz.
        with file_system.open_input_stream(inner, compression=None) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block


def _write(path: str | Path, blocks: Iterable[bytes]) -> None:
    if not is_remote(path):
        with replacing_file(Path(path)) as temporary, temporary.open("wb") as file:
            file.writelines(blocks)
        return
    file_system, inner = file_system_and_path(path)
    blocks = iter(blocks)
    # First, so that a source that cannot be read leaves no object.
    block: bytes | None = next(blocks, b"")
    with _store_errors(path):
        stream = file_system.open_output_stream(inner, compression=None)
    try:
        while block is not None:
            with _store_errors(path):
                stream.write(block)
            block = next(blocks, None)
        with _store_errors(path):
            stream.close()
    except BaseException:
        with contextlib.suppress(OSError):
            # It completes the object, now or when the stream is collected.
            stream.close()
            file_system.delete_file(inner)
        raise


def file_system_and_path(path: str | Path) -> tuple[FileSystem, str]:
    """The file system of a path, and the path inside it."""
    from pyarrow.fs import LocalFileSystem

    scheme, remote, inner = str(path).partition("://")
    if not remote:
        return LocalFileSystem(), str(path)
    return file_system_of(scheme), "/".join(filter(None, inner.split("/")))


@functools.lru_cache
def file_system_of(scheme: str) -> FileSystem:
    """The object store of a scheme, with the credentials that its own client finds."""
    from pyarrow.fs import GcsFileSystem, S3FileSystem

    if scheme == "gs":
        return GcsFileSystem(retry_time_limit=RETRY_LIMIT)
    if scheme not in ("s3", "minio"):
        raise UserError(
            f"a path must be local or begin with gs://, s3:// or minio://. Received: {scheme}://..."
        )
    endpoint = s3_endpoint()
    if endpoint is not None:
        protocol, _, address = endpoint.rstrip("/").rpartition("://")
        if "/" in address:
            raise UserError(f"AWS_ENDPOINT_URL must be a host and a port. Received: {endpoint}.")
        return S3FileSystem(endpoint_override=address, scheme=protocol or "https")
    if scheme == "minio":
        raise UserError(
            "AWS_ENDPOINT_URL must be the address of the server for minio:// paths. Received: none."
        )
    return S3FileSystem()


@contextlib.contextmanager
def _store_errors(path: str | Path, missing: bool = False) -> Iterator[None]:
    """Names the path in the errors of an object store; with `missing`, not if there is no file."""
    try:
        yield
    except OSError as error:
        if not is_remote(path) or (missing and isinstance(error, FileNotFoundError)):
            raise
        reason = one_line(error) or type(error).__name__
        raise UserError(f"{path} must be within reach. Received: {reason}.") from error

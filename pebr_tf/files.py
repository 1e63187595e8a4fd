"""Local files and folders that appear whole or not at all."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

STAGING = ".staging-"


@contextlib.contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yields a temporary name beside `path`; on success it is renamed over `path`, else removed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yields an empty temporary directory that on success becomes `path`, and else is removed.

    Raises:
      FileExistsError: `path` exists and is not an empty directory.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} must be new or an empty directory.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with staging_directory(path.parent) as scratch:
        yield scratch
        # Onto a folder that is not empty, the rename fails.
        scratch.rename(path)


@contextlib.contextmanager
def staging_directory(parent: Path) -> Iterator[Path]:
    """Yields a new directory in `parent`, locked for as long as this process lives.

    The caller renames it when it is complete; otherwise it is removed at the end.
    """
    while True:
        scratch = Path(tempfile.mkdtemp(prefix=STAGING, dir=parent))
        handle = _lock(scratch)
        # Before it was locked, another process may have removed it as abandoned.
        if handle is not None and scratch.exists():
            break
        if handle is not None:
            os.close(handle)
    try:
        scratch.chmod(0o755)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(handle)


def remove_abandoned(parent: Path) -> None:
    """Removes the staging directories of killed processes, whose locks ended with them."""
    for scratch in parent.glob(f"{STAGING}*"):
        handle = _lock(scratch)
        if handle is not None:
            shutil.rmtree(scratch, ignore_errors=True)
            os.close(handle)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Waits for the lock of `directory` and holds it. It leaves no file, and does not nest."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_remote(path: str | Path) -> bool:
    """Whether a path leads out of the local file system, such as gs://bucket/releases."""
    return "://" in str(path)


def _lock(directory: Path) -> int | None:
    """A handle that locks `directory`, or None if another process has it or it is gone."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle

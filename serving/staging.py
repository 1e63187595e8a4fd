"""Folders under another name until they are whole, and the locks of their makers."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

STAGING = ".staging-"


@contextlib.contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """Yields a new folder in `parent`, locked for as long as this process lives.

    It is removed at the end, unless it was renamed.
    """
    while True:
        scratch = Path(tempfile.mkdtemp(prefix=STAGING, dir=parent))
        handle = _lock(scratch)
        # Another push may have taken it for abandoned before it was locked.
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
    """Removes the folders that killed processes left: their locks went with them."""
    for scratch in parent.glob(f"{STAGING}*"):
        handle = _lock(scratch)
        if handle is not None:
            shutil.rmtree(scratch, ignore_errors=True)
            os.close(handle)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Waits until nobody else holds the lock of `directory`, and holds it.

    The lock is on the folder itself and leaves no file; it does not nest.
    """
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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

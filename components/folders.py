"""Artifacts as local folders: read where they are or copied, written whole or not at all."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tfx.dsl.io import fileio

from pebr_tf import storage
from pebr_tf.files import is_remote


@contextlib.contextmanager
def local_folder(uri: str) -> Iterator[Path]:
    """The folder at `uri`; of a remote one, a copy that is removed afterwards."""
    if not is_remote(uri):
        yield Path(uri)
        return
    with tempfile.TemporaryDirectory() as scratch:
        storage.copy_folder(uri, scratch)
        yield Path(scratch)


@contextlib.contextmanager
def published_folder(uri: str) -> Iterator[Path]:
    """A new local folder whose content becomes the artifact once it is complete."""
    # A remote artifact is uploaded at the end and needs no work folder beside it.
    work = contextlib.nullcontext("") if is_remote(uri) else work_folder(uri)
    with work as folder, artifact_folder(uri, folder) as content:
        yield content


@contextlib.contextmanager
def work_folder(uri: str) -> Iterator[str]:
    """A folder beside the artifact for workers; emptied of files that a killed attempt left."""
    work = f"{uri.rstrip('/')}.work"
    if fileio.exists(work):
        fileio.rmtree(work)
    fileio.makedirs(work)
    try:
        yield work
    finally:
        # An object store knows no folder without a file.
        if fileio.exists(work):
            fileio.rmtree(work)


@contextlib.contextmanager
def artifact_folder(uri: str, work: str) -> Iterator[Path]:
    """A local folder whose content becomes the artifact once it is complete.

    A local artifact is renamed into its place. A remote one is copied there file by file: TFX makes
    it known only after all of them.
    """
    uri = uri.rstrip("/")
    local = not is_remote(uri)
    with tempfile.TemporaryDirectory(dir=work if local else None) as scratch:
        folder = Path(scratch) / "artifact"
        folder.mkdir()
        yield folder
        if fileio.exists(uri):
            fileio.rmtree(uri)
        if local:
            folder.rename(uri)
        else:
            storage.copy_folder(folder, uri)

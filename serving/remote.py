"""Releases in an object store: pushed there whole, and fetched to where servers look for them.

    <remote>/<version>/               a release, as in `serving.release`
    <remote>/<version>/manifest.json  comes last: a version without it is no release
    <remote>/<version>/.claim-...     of the push that took the version
    <remote>/withdrawn.json           versions that are not fetched; nothing here writes it

An object store renames no folder and locks none. What a killed push leaves there has no manifest:
it is not fetched, and its number is not used again.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import tensorflow as tf

from pebr_tf.errors import UserError
from serving import manifest as manifests
from serving.manifest import MANIFEST
from serving.push import push
from serving.release import Parts, Release, read_release
from serving.staging import remove_abandoned, staging
from serving.versions import (
    WITHDRAWN,
    Clock,
    is_version,
    link_models,
    utc_now,
    versions,
    withdrawn,
)

LOGGER = logging.getLogger(__name__)

CLAIM = ".claim-"
# Versions that a push tries to get before it gives up.
CLAIMS = 10
# Few requests for a large file, and little memory.
CHUNK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class RemoteRelease:
    """A release that was pushed to a remote folder.

    Attributes:
      path: Its folder.
      version: Its number.
    """

    path: str
    version: int


def is_remote(path: str) -> bool:
    """Whether a path leads out of the local file system, such as gs://bucket/releases."""
    return "://" in path


def remote_folder(path: str) -> str:
    """A remote path without slashes at its end.

    Raises:
      UserError: It is not remote.
    """
    folder = path.rstrip("/")
    if not is_remote(folder):
        raise UserError(
            f"a remote folder of releases must be like gs://bucket/releases. Received: {path}."
        )
    return folder


def push_remote(releases: str, parts: Parts, now: Clock = utc_now) -> RemoteRelease:
    """Pushes a release to a remote folder, under a version above all others there.

    It is made and tried in a local folder, with all that `serving.push.push` checks, and uploaded.

    Pushes may run at once. Each leaves a claim in the folder of the version that it wants, and
    takes it only if nothing else is there: of two that want the same, the one that looks last sees
    the other's claim, or both do, and whoever does goes on to a later version. No version is
    written by two. This needs a store whose listings have every object that is written, as those of
    Google Cloud Storage and S3 do.

    Raises:
      UserError: What `serving.push.push` refuses, the remote folder cannot be written to, or no
        version could be had.
    """
    releases = remote_folder(releases)
    with tempfile.TemporaryDirectory() as scratch:
        release = push(Path(scratch), parts, now)
        with _one_sentence(releases, "written to", tf.errors.OpError):
            version = _claim(releases, release.version)
            path = f"{releases}/{version}"
            _upload(release, version, path)
    return RemoteRelease(path, version)


def fetch(remote: str, releases: Path) -> Path | None:
    """Copies the newest remote release to a folder of releases, where it appears whole.

    Newest is of those that are whole and not withdrawn in `remote`. It is taken if it is above all
    that `releases` has or has withdrawn, so that nothing follows a rollback there but a later push.
    Nothing that is there already is withdrawn or deleted.

    Args:
      remote: Where `push_remote` pushes to.
      releases: Folder of releases; made if it is not there.

    Returns:
      The new folder, or None where there is none to take.

    Raises:
      UserError: `remote` cannot be read or has no release, the release is broken, or `releases`
        cannot be written to.
    """
    remote, releases = remote_folder(remote), Path(releases)
    with (
        _one_sentence(remote, "fetched from", tf.errors.OpError),
        _one_sentence(releases, "written to", OSError),
    ):
        version = _newest(remote)
        if version is None:
            raise UserError(f"{remote} must have a release that is whole and not withdrawn.")
        if version <= newest_here(releases):
            return None
        releases.mkdir(parents=True, exist_ok=True)
        remove_abandoned(releases)
        with staging(releases) as scratch:
            directory = scratch / str(version)
            with _said_of(remote, scratch):
                _download_release(f"{remote}/{version}", directory)
                read_release(directory)
            try:
                directory.rename(releases / str(version))
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                # Another fetch was faster.
                return None
    try:
        link_models(releases)
    except OSError as error:
        # The release is there and whole, and the next fetch or rollback links it.
        LOGGER.warning("TF Serving will not find version %s: %s", version, error)
    return releases / str(version)


def newest_here(releases: Path) -> int:
    """The newest version in a local folder, also a withdrawn one; -1 where there is none."""
    return max([*versions(releases), *withdrawn(releases)], default=-1)


def latest_remote(remote: str) -> str | None:
    """The remote folder of the newest version that is whole and not withdrawn, or None.

    Raises:
      UserError: `remote` cannot be read.
    """
    remote = remote_folder(remote)
    with _one_sentence(remote, "read from", tf.errors.OpError):
        version = _newest(remote)
    return None if version is None else f"{remote}/{version}"


def _newest(remote: str) -> int | None:
    """The newest remote version that is whole and not withdrawn, if there is one."""
    gone = _withdrawn(remote)
    for version in sorted(_versions(remote) - gone, reverse=True):
        if tf.io.gfile.exists(f"{remote}/{version}/{MANIFEST}"):
            return version
    return None


def _versions(remote: str) -> set[int]:
    """The versions that a push has begun, whole or not."""
    # Listing a folder that is not there fails like a store that does not answer.
    if not tf.io.gfile.exists(remote):
        return set()
    return {int(name) for name in _names(remote) if is_version(name)}


def _withdrawn(remote: str) -> set[int]:
    """The versions of the remote withdrawn.json, if there is one."""
    source = f"{remote}/{WITHDRAWN}"
    if not tf.io.gfile.exists(source):
        return set()
    with tempfile.TemporaryDirectory() as scratch, _said_of(remote, Path(scratch)):
        _download(source, Path(scratch) / WITHDRAWN)
        return set(withdrawn(Path(scratch)))


def _names(folder: str) -> list[str]:
    """What a remote folder holds; stores mark folders with a slash."""
    return [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]


def _claim(releases: str, wanted: int) -> int:
    """A version that no other push has or gets, from `wanted` on and above all that are taken."""
    for _ in range(CLAIMS):
        taken = _versions(releases) | _withdrawn(releases)
        version = max([wanted, *(number + 1 for number in taken)])
        folder, claim = f"{releases}/{version}", f"{CLAIM}{uuid.uuid4().hex}"
        tf.io.gfile.makedirs(folder)
        with tf.io.gfile.GFile(f"{folder}/{claim}", "w") as file:
            file.write("a push took this version\n")
        names = _names(folder)
        if names == [claim]:
            return version
        # Others that see the same claims have another rank, and meet this push no more.
        wanted = version + 1 + sum(name < claim for name in names)
    raise UserError(
        f"{releases} must have a version that no other push takes. "
        f"Received: others at {CLAIMS} tries."
    )


def _upload(release: Release, version: int, path: str) -> None:
    """Copies a local release to a remote folder under another version, its manifest last."""
    manifest = replace(release.manifest, version=version)
    manifest.write(release.directory)
    for folder in {os.path.dirname(f"{path}/{name}") for name in manifest.files}:
        tf.io.gfile.makedirs(folder)
    for name in (*manifest.files, MANIFEST):
        tf.io.gfile.copy(str(release.path(name)), f"{path}/{name}")


def _download_release(path: str, directory: Path) -> None:
    """Copies the files that a remote manifest names, and no others."""
    _download(f"{path}/{MANIFEST}", directory / MANIFEST)
    for name in manifests.read(directory).files:
        try:
            _download(f"{path}/{name}", directory / name)
        except tf.errors.NotFoundError:
            raise UserError(f"{path}/{name} is missing from the release.") from None


def _download(source: str, target: Path) -> None:
    """Copies a remote file, so that a full disk is an OSError and a failing store is not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.gfile.GFile(source, "rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, CHUNK_BYTES)


@contextlib.contextmanager
def _said_of(remote: str, scratch: Path) -> Iterator[None]:
    """Lets an error about a copy name what was copied."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).replace(str(scratch), remote)) from error


@contextlib.contextmanager
def _one_sentence(place: str | Path, use: str, kind: type[Exception]) -> Iterator[None]:
    """Turns what a file system refuses into an error that a user can act on."""
    try:
        yield
    except kind as error:
        # TensorFlow's errors keep their text apart, and some have none.
        reason = getattr(error, "message", "") or str(error) or type(error).__name__
        reason = " ".join(reason.split()).rstrip(".")
        raise UserError(
            f"{place} must be a folder that a release can be {use}. Received: {reason}."
        ) from error

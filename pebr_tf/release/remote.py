"""Releases in an object store: uploaded whole, and fetched to the folders that servers read.

    <remote>/<version>/               a release
    <remote>/<version>/manifest.json  comes last: a version without it is not a release
    <remote>/<version>/.claim-...     marks the push that took the version
    <remote>/withdrawn.json           versions that are not fetched; nothing here writes it

An object store can neither rename nor lock a folder. What a killed push leaves has no manifest: it
is never fetched, and its version is not used again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import tensorflow as tf

from pebr_tf.errors import UserError
from pebr_tf.files import is_remote, remove_abandoned, staging_directory
from pebr_tf.release.release import PushResult, Release, ReleaseManifest, link, rename_new
from pebr_tf.release.versions import WITHDRAWN, is_version, newest_version, parse_withdrawn

CLAIM = ".claim-"
# Versions that a push tries to claim before it gives up.
CLAIMS = 10
# Few requests for a large file, and little memory.
CHUNK_BYTES = 16 * 2**20


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


def upload(releases: str, release: Release) -> PushResult:
    """Copies a local release to a remote folder, under a version above all others there.

    Pushes may run at the same time. Each writes a claim into the folder of the version that it
    wants, and takes the version only if nothing else is there. Of two that want the same, at least
    one sees the other's claim and tries a later version, so no version is written by two. This
    needs a store whose listings are consistent, as those of Google Cloud Storage and S3 are.

    Raises:
      UserError: The remote folder cannot be written to, or no version was free.
    """
    releases = remote_folder(releases)
    with _store_errors(releases, "written to", tf.errors.OpError):
        version = _claim(releases, release.version)
        path = f"{releases}/{version}"
        manifest = replace(release.manifest, version=version)
        manifest.save(release.directory)
        for folder in {os.path.dirname(f"{path}/{name}") for name in manifest.files}:
            tf.io.gfile.makedirs(folder)
        for name in (*manifest.files, manifest.FILE):
            tf.io.gfile.copy(str(release.directory / name), f"{path}/{name}")
    return PushResult(version, path)


def fetch(remote: str, releases: Path) -> Path | None:
    """Copies the newest remote release to a folder of releases, where it appears whole.

    Only releases that are whole and not withdrawn in `remote` count. The newest is fetched if it is
    above all versions that `releases` has or has withdrawn, so that after a local rollback only a
    later push is fetched. Nothing in `releases` is withdrawn or deleted.

    Returns:
      The new folder, or None if there is nothing to fetch.

    Raises:
      UserError: `remote` cannot be read or has no release, the release is damaged, or `releases`
        cannot be written to.
    """
    remote, releases = remote_folder(remote), Path(releases)
    with (
        _store_errors(remote, "fetched from", tf.errors.OpError),
        _store_errors(releases, "written to", OSError),
    ):
        version = _newest(remote)
        if version is None:
            raise UserError(f"{remote} must have a release that is whole and not withdrawn.")
        if version <= newest_version(releases):
            return None
        releases.mkdir(parents=True, exist_ok=True)
        remove_abandoned(releases)
        with staging_directory(releases) as scratch:
            directory = scratch / str(version)
            try:
                _download_release(f"{remote}/{version}", directory)
                Release.load(directory)
            except UserError as error:
                raise UserError(str(error).replace(str(scratch), remote)) from error
            if not rename_new(directory, releases / str(version)):
                # Another fetch was faster.
                return None
    link(releases, version)
    return releases / str(version)


def latest_remote(remote: str) -> str | None:
    """The remote folder of the newest version that is whole and not withdrawn, or None.

    Raises:
      UserError: `remote` cannot be read.
    """
    remote = remote_folder(remote)
    with _store_errors(remote, "read from", tf.errors.OpError):
        version = _newest(remote)
    return None if version is None else f"{remote}/{version}"


def _newest(remote: str) -> int | None:
    gone = _withdrawn(remote)
    for version in sorted(_versions(remote) - gone, reverse=True):
        if tf.io.gfile.exists(f"{remote}/{version}/{ReleaseManifest.FILE}"):
            return version
    return None


def _versions(remote: str) -> set[int]:
    """The versions that a push has begun, whole or not."""
    # Listing a folder that does not exist fails like a store that does not answer.
    if not tf.io.gfile.exists(remote):
        return set()
    return {int(name) for name in _names(remote) if is_version(name)}


def _withdrawn(remote: str) -> set[int]:
    path = f"{remote}/{WITHDRAWN}"
    if not tf.io.gfile.exists(path):
        return set()
    return set(parse_withdrawn(tf.io.gfile.GFile(path, "rb").read(), path))


def _names(folder: str) -> list[str]:
    return [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]


def _claim(releases: str, wanted: int) -> int:
    """A version that no other push has or gets, at least `wanted` and above all that are taken."""
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
        # Pushes that see the same claims have different ranks among them, and so part here.
        wanted = version + 1 + sum(name < claim for name in names)
    raise UserError(
        f"{releases} must have a version that no other push takes. "
        f"Received: others at {CLAIMS} tries."
    )


def _download_release(path: str, directory: Path) -> None:
    """Copies the files that a remote manifest lists, and no others."""
    _download(f"{path}/{ReleaseManifest.FILE}", directory / ReleaseManifest.FILE)
    for name in ReleaseManifest.load(directory).files:
        try:
            _download(f"{path}/{name}", directory / name)
        except tf.errors.NotFoundError:
            raise UserError(f"{path}/{name} is missing from the release.") from None


def _download(source: str, target: Path) -> None:
    """Copies a remote file so that a full disk is an OSError and a failing store is not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.gfile.GFile(source, "rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, CHUNK_BYTES)


@contextlib.contextmanager
def _store_errors(folder: str | Path, use: str, kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        # TensorFlow's errors keep their text in `message`, which may be empty.
        reason = getattr(error, "message", "") or str(error) or type(error).__name__
        reason = " ".join(reason.split()).rstrip(".")
        raise UserError(
            f"{folder} must be a folder that a release can be {use}. Received: {reason}."
        ) from error

"""Releases in an object store: uploaded whole, and fetched to the folders that servers read.

    <remote>/<version>/               a release
    <remote>/<version>/manifest.json  comes last: a version without it is not a release
    <remote>/<version>/.claim-...     marks the push that took the version

An object store can neither rename nor lock a folder. What a killed push leaves has no manifest: it
is never fetched, and its version is not used again.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pebr_tf import storage
from pebr_tf.errors import UserError
from pebr_tf.files import is_remote, remove_abandoned, staging_directory
from pebr_tf.release.release import (
    PushResult,
    Release,
    ReleaseManifest,
    disk_errors,
    link,
    rename_new,
)
from pebr_tf.release.versions import newest_served, newest_version

CLAIM = ".claim-"
# Versions that a push tries to claim before it gives up.
CLAIMS = 10


def remote_folder(path: str) -> str:
    """A remote path without slashes at its end."""
    folder = path.rstrip("/")
    if not is_remote(folder):
        raise UserError(
            f"a remote folder of releases must be like gs://bucket/releases. Received: {path}."
        )
    return folder


def upload(
    releases: str, release: Release, confirm: Callable[[], None] = lambda: None
) -> PushResult:
    """Copies a local release to a remote folder, under a version above all others there.

    Pushes may run at the same time. Each writes a claim into the folder of the version that it
    wants, and takes the version only if nothing else is there. If two want the same version, at
    least one sees the other's claim and tries a later one, so no two write the same version. This
    needs a store whose listings are consistent, as those of Google Cloud Storage and S3 are.
    `confirm` is called before the manifest, and may raise.
    """
    releases = remote_folder(releases)
    version = _claim(releases, release.version)
    path = f"{releases}/{version}"
    manifest = replace(release.manifest, version=version)
    manifest.save(release.directory)
    for name in manifest.files:
        storage.copy(release.directory / name, f"{path}/{name}")
    confirm()
    storage.copy(release.directory / manifest.FILE, f"{path}/{manifest.FILE}")
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
    version = newest_served(remote)
    if version is None:
        raise UserError(f"{remote} must have a release that is whole and not withdrawn.")
    if version <= newest_version(releases):
        return None
    with disk_errors(releases):
        releases.mkdir(parents=True, exist_ok=True)
        remove_abandoned(releases)
        with staging_directory(releases) as scratch:
            directory = scratch / str(version)
            try:
                _download(f"{remote}/{version}", directory)
                Release.load(directory)
            except UserError as error:
                raise UserError(str(error).replace(str(scratch), remote)) from error
            if not rename_new(directory, releases / str(version)):
                # Another fetch was faster.
                return None
    link(releases, version)
    return releases / str(version)


def _claim(releases: str, wanted: int) -> int:
    """Claims a version that no other push has, at least `wanted` and above all that are taken."""
    for _ in range(CLAIMS):
        version = max(wanted, newest_version(releases) + 1)
        folder, claim = f"{releases}/{version}", f"{CLAIM}{uuid.uuid4().hex}"
        storage.write_bytes(f"{folder}/{claim}", b"a push took this version\n")
        names = storage.names(folder)
        if names == [claim]:
            return version
        # Pushes that see the same claims have different ranks among them, and so part here.
        wanted = version + 1 + sum(name < claim for name in names)
    raise UserError(
        f"{releases} must have a version that no other push takes. "
        f"Received: others at {CLAIMS} tries."
    )


def _download(path: str, directory: Path) -> None:
    """Copies the files that a remote manifest lists, and no others."""
    storage.copy(f"{path}/{ReleaseManifest.FILE}", directory / ReleaseManifest.FILE)
    for name in ReleaseManifest.load(directory).files:
        try:
            storage.copy(f"{path}/{name}", directory / name)
        except FileNotFoundError:
            raise UserError(f"{path}/{name} is missing from the release.") from None

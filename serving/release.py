"""A release: all that answers queries, in one folder a version, which appears whole or not at all.

    <releases>/<version>/
      manifest.json     what it is, and the SHA-256 of every file
      query_model/      SavedModel: text in, vector, law and threshold out
      index/            items to search; `pebr_tf.retrieval.load_index`
      payload.parquet   item_id and the columns to answer with, sorted by item_id
      moments.npz       mean and covariance of the item vectors
      cutoff.json       the calibrated knobs, overall and by stratum
      config.yaml       the configuration, the shares of the strata included
      evaluation.json, report.html      how good it is

Versions are times in UTC, as numbers: YYYYMMDDHHMMSS, or one more than the last where that is not
larger. What a killed push leaves begins with a dot, is no release, and goes with the next push.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from serving import manifest as manifests
from serving.manifest import Manifest
from serving.moments import Moments
from serving.signatures import read_facts

STAGING = ".staging-"


@dataclass(frozen=True)
class Release:
    """A release on disk.

    Attributes:
      directory: Its folder.
      manifest: What it says about itself.
    """

    directory: Path
    manifest: Manifest

    @property
    def version(self) -> int:
        """Its number."""
        return self.manifest.version

    def path(self, name: str) -> Path:
        """A file or folder inside it."""
        return self.directory / name

    def config(self) -> Config:
        """The configuration that it was made with."""
        return Config.load(self.path("config.yaml"))


@dataclass(frozen=True)
class Parts:
    """Where the parts of a release come from.

    Attributes:
      cutoff: Folder with cutoff.json and query_model/.
      index: Folder with index/, payload.parquet and moments.npz; what else it holds stays behind.
      evaluation: Folder with evaluation.json and report.html.
      config: The configuration.
      span: Of the data, or None.
    """

    cutoff: Path
    index: Path
    evaluation: Path
    config: Config
    span: int | None = None

    def sources(self) -> dict[str, Path]:
        """Name inside the release -> file or folder to copy."""
        return {
            "query_model": self.cutoff / "query_model",
            "cutoff.json": self.cutoff / "cutoff.json",
            "index": self.index / "index",
            "payload.parquet": self.index / "payload.parquet",
            "moments.npz": self.index / "moments.npz",
            "evaluation.json": self.evaluation / "evaluation.json",
            "report.html": self.evaluation / "report.html",
        }


NAMES = (*Parts(Path(), Path(), Path(), Config()).sources(), "config.yaml")


def write_release(releases: Path, parts: Parts) -> Release:
    """Pushes a release, under a version above all others in `releases`.

    It is made under another name and renamed, so that a reader sees all of it or nothing. Any
    number of pushes may run at once: each gets a version of its own.

    Raises:
      UserError: A part is missing, or the query model does not belong to the index.
    """
    for source in parts.sources().values():
        if not source.exists():
            raise UserError(f"{source} is missing: a release needs it.")
    releases = Path(releases)
    releases.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(releases)
    with _staging(releases) as scratch:
        for name, source in parts.sources().items():
            copy = shutil.copytree if source.is_dir() else shutil.copyfile
            copy(source, scratch / name)
        (scratch / "config.yaml").write_text(parts.config.to_yaml(), encoding="utf-8")
        now = datetime.now(timezone.utc)
        manifest = Manifest(
            version=int(now.strftime("%Y%m%d%H%M%S")),
            created=now.isoformat(timespec="seconds"),
            packages=manifests.package_versions(),
            config=parts.config.fingerprint(),
            span=parts.span,
            identity=_identity(scratch),
            files=manifests.checksums(scratch),
        )
        return _appear(releases, scratch, manifest)


def read_release(directory: Path, verify: bool = True) -> Release:
    """Opens a release.

    Args:
      directory: The folder of one version.
      verify: Compare the checksums of all files.

    Raises:
      UserError: Not a release, another format, a file that is missing, has changed or is not in the
        manifest, or a query model that was not made for the index.
    """
    directory = Path(directory)
    manifest = manifests.read(directory)
    for name in NAMES:
        if not (directory / name).exists():
            raise UserError(f"{directory / name} is missing from the release.")
    if verify:
        manifest.verify(directory)
    if _identity(directory) != manifest.identity:
        raise UserError(
            f"{directory} must hold the model and index of its manifest, identity "
            f"{manifest.identity[:12]}... Received: {_identity(directory)[:12]}..."
        )
    return Release(directory, manifest)


def versions(releases: Path) -> list[int]:
    """The versions in a folder of releases, ascending; none if there is no such folder."""
    if not Path(releases).is_dir():
        return []
    names = (path.name for path in Path(releases).iterdir() if path.is_dir())
    return sorted(int(name) for name in names if name.isdecimal() and str(int(name)) == name)


def latest_release(releases: Path) -> Path | None:
    """The folder of the newest version, or None where there is none yet."""
    found = versions(releases)
    return Path(releases) / str(found[-1]) if found else None


def find_release(directory: Path) -> Path:
    """`directory` itself if it is a release, else the latest of the releases in it.

    Raises:
      UserError: It is neither.
    """
    directory = Path(directory)
    if (directory / manifests.MANIFEST).exists():
        return directory
    latest = latest_release(directory)
    if latest is None:
        raise UserError(f"{directory} must be a release or a folder of releases.")
    return latest


def _identity(directory: Path) -> str:
    """The fingerprint that the query model and the index of a release have in common."""
    model = read_facts(directory / "query_model").get("moments")
    index = Moments.load(directory / "moments.npz").fingerprint()
    if model != index:
        raise UserError(
            f"{directory / 'query_model'} must be made for the index beside it, identity "
            f"{index[:12]}... Received: {str(model)[:12]}..."
        )
    return index


def _appear(releases: Path, scratch: Path, manifest: Manifest) -> Release:
    """Renames a finished folder to the next free version."""
    version = manifest.version
    while True:
        version = max(version, *(last + 1 for last in versions(releases)[-1:]), 0)
        manifest = replace(manifest, version=version)
        manifest.write(scratch)
        directory = releases / str(version)
        try:
            scratch.rename(directory)
        except OSError as error:
            # Another push was faster; a folder is never renamed onto one that holds something.
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            continue
        return Release(directory, manifest)


@contextlib.contextmanager
def _staging(releases: Path) -> Iterator[Path]:
    """Yields a new folder, locked for as long as this process lives; removed unless renamed."""
    while True:
        scratch = Path(tempfile.mkdtemp(prefix=STAGING, dir=releases))
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


def _remove_abandoned(releases: Path) -> None:
    """Removes what killed pushes left: their locks went with them."""
    for scratch in releases.glob(f"{STAGING}*"):
        handle = _lock(scratch)
        if handle is not None:
            shutil.rmtree(scratch, ignore_errors=True)
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

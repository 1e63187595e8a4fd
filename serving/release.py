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
      self_test.json    queries and what it answered when it was pushed, if it was tried

Versions are times in UTC, as numbers: YYYYMMDDHHMMSS, or one more than the last where that is not
larger. What a killed push leaves begins with a dot, is no release, and goes with the next push.
`serving.push` tries a release before it appears; `serving.versions` says what stands beside it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.release.evaluation import EVALUATION_FILE, REPORT_FILE
from serving import manifest as manifests
from serving.manifest import Manifest
from serving.moments import Moments
from serving.signatures import read_facts
from serving.staging import remove_abandoned, staging
from serving.versions import Clock, is_version, link_models, served, utc_now, versions, withdrawn

LOGGER = logging.getLogger(__name__)


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
            EVALUATION_FILE: self.evaluation / EVALUATION_FILE,
            REPORT_FILE: self.evaluation / REPORT_FILE,
        }


NAMES = (*Parts(Path(), Path(), Path(), Config()).sources(), "config.yaml")


def write_release(
    releases: Path,
    parts: Parts,
    finish: Callable[[Path], None] | None = None,
    now: Clock = utc_now,
) -> Release:
    """Writes a release, under a version above all others in `releases`.

    It is made under another name and renamed, so that a reader sees all of it or nothing. Any
    number of pushes may run at once: each gets a version of its own.

    Args:
      releases: Folder of releases; made if it is not there.
      parts: What to write.
      finish: Called with the folder while it is out of sight, to add to it or to refuse it; there
        is a manifest by then, without checksums.
      now: The clock.

    Raises:
      UserError: A part is missing, the query model does not belong to the index, or there is no
        space.
    """
    for source in parts.sources().values():
        if not source.exists():
            raise UserError(f"{source} is missing: a release needs it.")
    releases = Path(releases)
    with _one_sentence(releases):
        releases.mkdir(parents=True, exist_ok=True)
        remove_abandoned(releases)
        with staging(releases) as scratch:
            for name, source in parts.sources().items():
                _copy(source, scratch / name)
            (scratch / "config.yaml").write_text(parts.config.to_yaml(), encoding="utf-8")
            time = now()
            manifest = Manifest(
                version=int(time.strftime("%Y%m%d%H%M%S")),
                created=time.isoformat(timespec="seconds"),
                packages=manifests.package_versions(),
                config=parts.config.fingerprint(),
                span=parts.span,
                identity=_identity(scratch),
                files={},
            )
            manifest.write(scratch)
            if finish is not None:
                finish(scratch)
            manifest = replace(manifest, files=manifests.checksums(scratch))
            release = _appear(releases, scratch, manifest)
    try:
        link_models(releases)
    except OSError as error:
        # The release is there and whole, and the next push or rollback links it.
        LOGGER.warning("TF Serving will not find version %s: %s", release.version, error)
    return release


def read_release(directory: Path, verify: bool = True) -> Release:
    """Opens a release.

    Args:
      directory: The folder of one version.
      verify: Compare the checksums of all files.

    Raises:
      UserError: Not a release, another format, a file that is missing, has changed or is not in the
        manifest, a query model that was not made for the index, or a folder that is named after
        another version.
    """
    directory = Path(directory)
    manifest = manifests.read(directory)
    if is_version(directory.name) and directory.name != str(manifest.version):
        raise UserError(
            f"{directory} must hold the version that it is named after. "
            f"Received: {manifest.version}."
        )
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


def latest_release(releases: Path) -> Path | None:
    """The folder of the newest version that is not withdrawn, or None where there is none yet.

    Raises:
      UserError: What `serving.versions.withdrawn` refuses.
    """
    found = served(releases)
    return Path(releases) / str(found[-1]) if found else None


def find_release(directory: Path) -> Path:
    """`directory` itself if it is a release, else the latest of the releases in it.

    Raises:
      UserError: It is neither, or all of its releases are withdrawn.
    """
    directory = Path(directory)
    if (directory / manifests.MANIFEST).exists():
        return directory
    latest = latest_release(directory)
    if latest is None and versions(directory):
        raise UserError(f"{directory} must have a release that is not withdrawn.")
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
        taken = [*versions(releases), *withdrawn(releases)]
        version = max(version, *(number + 1 for number in taken), 0)
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


def _copy(source: Path, target: Path) -> None:
    """Copies a file, or all files of a folder; stops at the first that fails."""
    if not source.is_dir():
        shutil.copyfile(source, target)
        return
    target.mkdir()
    for path in sorted(source.iterdir()):
        _copy(path, target / path.name)


@contextlib.contextmanager
def _one_sentence(releases: Path) -> Iterator[None]:
    """Turns what a disk refuses into an error that a user can act on."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UserError(
                f"{releases} must be a folder that a release can be written to. Received: {error}."
            ) from error
        place = Path(error.filename2 or error.filename or releases)
        # What was being written is gone by now.
        place = releases if releases in place.parents else place
        raise UserError(f"{place} must have space. Received: {error.strerror}.") from error

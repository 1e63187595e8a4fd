"""A release: everything that answers queries, in one folder per version.

    <releases>/<version>/
      manifest.json     description, and the SHA-256 of every file
      query_model/      SavedModel: text in, vector, law and threshold out
      index/, payload.parquet, moments.npz      see `pebr_tf.release.catalogue`
      cutoff.json       the calibrated knobs, overall and by stratum
      config.yaml       the configuration, including the shares of the strata
      evaluation.json, report.html      how good it is
      self_test.json    queries and the answers of the push, if the release was tested

Versions are times in UTC, as numbers: YYYYMMDDHHMMSS, or one more than the last version if that is
not larger. A release appears whole or not at all: what a killed push leaves begins with a dot, and
the next push removes it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from pebr_tf import __version__
from pebr_tf.config import Config
from pebr_tf.cutoff.cutoff_file import FILE_NAME as CUTOFF
from pebr_tf.errors import UserError
from pebr_tf.files import remove_abandoned, staging_directory
from pebr_tf.manifest import FolderManifest
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.evaluation import EVALUATION_FILE, REPORT_FILE
from pebr_tf.release.towers import QueryModelDescription
from pebr_tf.release.versions import (
    MANIFEST,
    QUERY_MODEL,
    is_version,
    link_models,
    newest_version,
    served,
    utc_now,
    versions,
)

LOGGER = logging.getLogger(__name__)

# The packages whose versions decide whether a model or an index reads the same elsewhere.
PACKAGES = ("tensorflow", "tensorflow-probability", "scann", "numpy", "pyarrow")
CONFIG = "config.yaml"
REQUIRED = (QUERY_MODEL, CUTOFF, *EmbeddedCatalogue.SERVED, EVALUATION_FILE, REPORT_FILE, CONFIG)


@dataclass(frozen=True, kw_only=True)
class ReleaseManifest(FolderManifest):
    """The content of manifest.json.

    Attributes:
      created: Time of the push, ISO 8601 in UTC.
      packages: Name -> version of the packages that wrote the release.
      identity: Fingerprint of the item vectors, which ties the query model to the index.
      model: The version that the towers were first pushed as; None: this one.
    """

    FILE: ClassVar[str] = MANIFEST
    NOUN: ClassVar[str] = "release"

    version: int
    created: str
    packages: dict[str, str]
    config: str
    span: int | None
    identity: str
    model: int | None = None


@dataclass(frozen=True)
class Release:
    directory: Path
    manifest: ReleaseManifest

    @classmethod
    def load(cls, directory: Path, verify: bool = True) -> Release:
        """Opens a release.

        Raises:
          UserError: Not a release, another format, a file that is missing, was changed or is not in
            the manifest, a query model that was not made for the index, or a folder that is named
            after another version.
        """
        directory = Path(directory)
        manifest = ReleaseManifest.load(directory)
        if is_version(directory.name) and directory.name != str(manifest.version):
            raise UserError(
                f"{directory} must hold the version that it is named after. "
                f"Received: {manifest.version}."
            )
        for name in REQUIRED:
            if not (directory / name).exists():
                raise UserError(f"{directory / name} is missing from the release.")
        if verify:
            manifest.verify(directory)
        if (identity := _identity(directory)) != manifest.identity:
            raise UserError(
                f"{directory} must hold the model and index of its manifest, identity "
                f"{manifest.identity[:12]}... Received: {identity[:12]}..."
            )
        return cls(directory, manifest)

    @property
    def version(self) -> int:
        return self.manifest.version

    @property
    def query_model(self) -> Path:
        return self.directory / QUERY_MODEL

    @property
    def catalogue(self) -> EmbeddedCatalogue:
        return EmbeddedCatalogue(self.directory)

    @property
    def report(self) -> Path:
        return self.directory / REPORT_FILE

    def config(self) -> Config:
        return load_config(self.directory)


@dataclass(frozen=True)
class ReleaseSources:
    """The artifacts that a release is made from.

    Attributes:
      cutoff: Folder with the calibration and the query model.
      index: Folder of the embedded catalogue.
      evaluation: Folder with the evaluation and its report.
      model: The version that the towers were first pushed as; None: they are new.
    """

    cutoff: Path
    index: Path
    evaluation: Path
    config: Config
    span: int | None = None
    model: int | None = None

    def paths(self) -> dict[str, Path]:
        """Name inside the release -> file or folder to copy."""
        folders = {
            self.cutoff: (QUERY_MODEL, CUTOFF),
            self.index: EmbeddedCatalogue.SERVED,
            self.evaluation: (EVALUATION_FILE, REPORT_FILE),
        }
        return {name: folder / name for folder, names in folders.items() for name in names}


@dataclass(frozen=True)
class PushResult:
    """Pusher's output: version and path of the pushed release, or None for both."""

    FILE: ClassVar[str] = "release.json"

    version: int | None = None
    path: str | None = None

    @classmethod
    def load(cls, directory: Path) -> PushResult:
        try:
            return cls(**json.loads((directory / cls.FILE).read_text(encoding="utf-8")))
        except (OSError, TypeError, ValueError) as error:
            raise UserError(f"{cls.FILE} must hold version and path. Received: {error}.") from None

    def save(self, directory: Path) -> None:
        text = json.dumps(asdict(self), indent=2) + "\n"
        (directory / self.FILE).write_text(text, encoding="utf-8")


def load_config(directory: Path) -> Config:
    """The configuration of the release in `directory`, without reading anything else."""
    return Config.load(directory / CONFIG)


def write_release(
    releases: Path,
    sources: ReleaseSources,
    finish: Callable[[Path], dict[str, str]] = ReleaseManifest.checksums,
) -> Release:
    """Writes a release, under a version above all others in `releases`.

    It is written under another name and renamed, so that readers see all of it or nothing. Pushes
    may run at the same time: each gets its own version.

    `finish` is called with the hidden folder, whose manifest lists no files yet. It may add files
    to the folder or reject it, and returns the checksums of all files.
    """
    for source in sources.paths().values():
        if not source.exists():
            raise UserError(f"{source} is missing: a release needs it.")
    releases = Path(releases)
    with disk_errors(releases):
        releases.mkdir(parents=True, exist_ok=True)
        remove_abandoned(releases)
        with staging_directory(releases) as scratch:
            for name, source in sources.paths().items():
                _copy(source, scratch / name)
            (scratch / CONFIG).write_text(sources.config.to_yaml(), encoding="utf-8")
            time = utc_now()
            manifest = ReleaseManifest(
                version=int(time.strftime("%Y%m%d%H%M%S")),
                created=time.isoformat(timespec="seconds"),
                packages={
                    "pebr-tf": __version__,
                    **{name: metadata.version(name) for name in PACKAGES},
                },
                config=sources.config.fingerprint(),
                span=sources.span,
                identity=_identity(scratch),
                model=sources.model,
                files={},
            )
            manifest.save(scratch)
            release = _publish(releases, scratch, replace(manifest, files=finish(scratch)))
    link(releases, release.version)
    return release


def link(releases: Path, version: int) -> None:
    """Links the query models for TF Serving; a failure is logged, and the next push retries."""
    try:
        link_models(releases)
    except OSError as error:
        LOGGER.warning("TF Serving will not find version %s: %s", version, error)


def find_release(directory: Path) -> Path:
    """`directory` itself if it is a release, else the latest of the releases in it."""
    directory = Path(directory)
    if (directory / ReleaseManifest.FILE).exists():
        return directory
    if found := served(directory):
        return directory / str(found[-1])
    if versions(directory):
        raise UserError(f"{directory} must have a release that is not withdrawn.")
    raise UserError(f"{directory} must be a release or a folder of releases.")


def _identity(directory: Path) -> str:
    """The fingerprint that the query model and the index of a release have in common."""
    model = QueryModelDescription.load(directory / QUERY_MODEL).moments
    index = EmbeddedCatalogue(directory).moments().fingerprint()
    if model != index:
        raise UserError(
            f"{directory / QUERY_MODEL} must be made for the index beside it, identity "
            f"{index[:12]}... Received: {str(model)[:12]}..."
        )
    return index


def _publish(releases: Path, scratch: Path, manifest: ReleaseManifest) -> Release:
    version = manifest.version
    while True:
        version = max(version, newest_version(releases) + 1)
        manifest = replace(manifest, version=version)
        manifest.save(scratch)
        directory = releases / str(version)
        if rename_new(scratch, directory):
            return Release(directory, manifest)


def rename_new(source: Path, target: Path) -> bool:
    """Renames a folder; returns whether it did, which it does not if `target` holds something."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    """Copies a file or a folder; stops at the first file that fails, unlike `shutil.copytree`."""
    if not source.is_dir():
        shutil.copyfile(source, target)
        return
    target.mkdir()
    for path in sorted(source.iterdir()):
        _copy(path, target / path.name)


@contextlib.contextmanager
def disk_errors(releases: Path) -> Iterator[None]:
    """Names the folder of releases, or what has no space, in the errors of the local disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UserError(
                f"{releases} must be a folder that a release can be written to. Received: {error}."
            ) from error
        path = Path(error.filename2 or error.filename or releases)
        # The file that was being written has been removed with its folder.
        path = releases if releases in path.parents else path
        raise UserError(f"{path} must have space. Received: {error.strerror}.") from error

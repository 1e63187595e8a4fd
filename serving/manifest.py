"""manifest.json: what a release is, and a checksum of every file that belongs to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from pebr_tf import __version__
from pebr_tf.errors import UserError
from pebr_tf.retrieval.artifact import checksum

FORMAT = 1
MANIFEST = "manifest.json"
# Whose versions decide whether a model or an index reads the same elsewhere.
PACKAGES = ("tensorflow", "tensorflow-probability", "scann", "numpy", "pyarrow")


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json.

    Attributes:
      version: Of the release, a whole number that grows.
      created: Time of the push, ISO 8601 in UTC.
      packages: Name -> version of what wrote the release.
      config: Fingerprint of the configuration.
      span: Of the data that it was trained on, or None.
      identity: Fingerprint of the item vectors, which ties the query model to the index.
      files: Path inside the release, with slashes -> SHA-256.
      format: Of the release itself.
    """

    version: int
    created: str
    packages: dict[str, str]
    config: str
    span: int | None
    identity: str
    files: dict[str, str]
    format: int = FORMAT

    def write(self, directory: Path) -> None:
        """Writes manifest.json into `directory`."""
        content = {"format": self.format, **asdict(self)}
        text = json.dumps({**content, "digest": _digest(content)}, indent=2)
        (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")

    def verify(self, directory: Path) -> None:
        """Refuses a folder in which a file is missing, has changed, lies elsewhere, or was added.

        What begins with a dot is no part of a release and is passed over.

        Raises:
          UserError: Names the first such file.
        """
        root = directory.resolve()
        for name, expected in self.files.items():
            path = directory / name
            if not path.is_file():
                raise UserError(f"{path} is missing from the release.")
            if not path.resolve().is_relative_to(root):
                raise UserError(
                    f"{path} must be a file of the release. Received: a link to {path.resolve()}."
                )
            if (received := checksum(path)) != expected:
                raise UserError(
                    f"{path} must have SHA-256 {expected[:12]}... as in {MANIFEST}. "
                    f"Received: {received[:12]}..."
                )
        # Loaders look for files by name: one that was added may stand in for one that was checked.
        added = sorted(set(_names(directory)) - set(self.files))
        if added:
            raise UserError(f"{directory / added[0]} must be listed in {MANIFEST} or be removed.")


def read(directory: Path) -> Manifest:
    """The manifest of a release.

    Raises:
      UserError: Not a release, another format, or a manifest that is not one of ours.
    """
    path = Path(directory) / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{directory} must be a release with {MANIFEST}.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} must be readable JSON. Received: {error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        received = content.get("format") if isinstance(content, dict) else content
        raise UserError(f"{path} must have format {FORMAT}. Received: {received!r}.")
    # Checksums vouch for the other files, and this one for itself; releases of 0.3 have none.
    digest = content.pop("digest", None)
    if digest is not None and digest != (received := _digest(content)):
        raise UserError(f"{path} must have digest {digest!r}. Received: {received!r}.")
    try:
        manifest = Manifest(**content)
        names = list(manifest.files.items())
    except (TypeError, AttributeError) as error:
        raise UserError(f"{path} must have the keys of a manifest. Received: {error}.") from None
    for name, digest in names:
        if not _is_inside(name) or not isinstance(digest, str):
            raise UserError(f"{path} must list files inside the release. Received: {name!r}.")
    return manifest


def checksums(directory: Path) -> dict[str, str]:
    """SHA-256 of every file of a release, by its path inside it."""
    return {name: checksum(directory / name) for name in _names(directory)}


def package_versions() -> dict[str, str]:
    """Versions of this project and of what reads and writes its files."""
    return {"pebr-tf": __version__, **{name: metadata.version(name) for name in PACKAGES}}


def _digest(content: dict[str, Any]) -> str:
    """SHA-256 of what a manifest says."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _names(directory: Path) -> list[str]:
    relative = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return sorted(
        path.as_posix()
        for path in relative
        if path.as_posix() != MANIFEST and not any(part.startswith(".") for part in path.parts)
    )


def _is_inside(name: Any) -> bool:
    """Whether `name` is a plain relative path that does not lead out."""
    path = PurePosixPath(name)
    return path.as_posix() == name and not path.is_absolute() and ".." not in path.parts

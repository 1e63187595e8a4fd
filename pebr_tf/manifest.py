"""Manifests: JSON files that describe a folder and hold the SHA-256 of every file in it."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, TypeVar

from pebr_tf.errors import UserError

FORMAT = 1
ManifestType = TypeVar("ManifestType", bound="FolderManifest")


@dataclass(frozen=True, kw_only=True)
class FolderManifest:
    """Base class of manifests. A subclass adds its own fields, which JSON must be able to hold.

    Attributes:
      FILE: Name of the manifest inside its folder.
      NOUN: What the folder is, for error messages.
      files: Path inside the folder, with slashes -> SHA-256.
    """

    FILE: ClassVar[str]
    NOUN: ClassVar[str]

    files: dict[str, str]

    @classmethod
    def load(cls: type[ManifestType], directory: Path) -> ManifestType:
        """Reads the manifest of a folder; `verify` compares the other files with it.

        Raises:
          UserError: No manifest, another format, unknown or missing keys, or a changed manifest.
        """
        path = Path(directory) / cls.FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            article = "an" if cls.NOUN[0] in "aeiou" else "a"
            raise UserError(f"{directory} must be {article} {cls.NOUN} with {cls.FILE}.") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must be readable JSON. Received: {error}.") from None
        received = content.pop("format", None) if isinstance(content, dict) else content
        if received != FORMAT:
            raise UserError(f"{path} must have format {FORMAT}. Received: {received!r}.")
        # The digest protects the manifest itself, as the checksums protect the other files.
        digest = content.pop("digest", None)
        if digest is not None and digest != (received := _digest(content)):
            raise UserError(f"{path} must have digest {digest!r}. Received: {received!r}.")
        try:
            manifest = cls(**content)
            names = list(manifest.files.items())
        except (TypeError, AttributeError) as error:
            raise UserError(
                f"{path} must have the keys of a manifest. Received: {error}."
            ) from None
        for name, checksum in names:
            if not _is_inside(name) or not isinstance(checksum, str):
                raise UserError(
                    f"{path} must list files inside the {cls.NOUN}. Received: {name!r}."
                )
        return manifest

    def save(self, directory: Path) -> None:
        content = dataclasses.asdict(self)
        text = json.dumps({"format": FORMAT, **content, "digest": _digest(content)}, indent=2)
        (directory / self.FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def checksums(cls, directory: Path) -> dict[str, str]:
        """SHA-256 of every file of a folder, by its path inside it; see `files`."""
        return {name: sha256(directory / name) for name in cls._names(directory)}

    def verify(self, directory: Path, checksums: Mapping[str, str] | None = None) -> None:
        """Rejects a folder in which a file is missing, was changed or added, or is a link outwards.

        `checksums` is what `checksums` returned, so that no file is read twice; None computes them.
        """
        root = directory.resolve()
        for name, expected in self.files.items():
            path = directory / name
            if not path.is_file():
                raise UserError(f"{path} is missing from the {self.NOUN}.")
            if not path.resolve().is_relative_to(root):
                raise UserError(
                    f"{path} must be a file of the {self.NOUN}. "
                    f"Received: a link to {path.resolve()}."
                )
            received = sha256(path) if checksums is None else checksums[name]
            if received != expected:
                raise UserError(
                    f"{path} must have SHA-256 {expected[:12]}... as in {self.FILE}. "
                    f"Received: {received[:12]}..."
                )
        # Loaders look for files by name: an added file may take the place of a verified one.
        added = sorted(set(self._names(directory)) - set(self.files))
        if added:
            raise UserError(f"{directory / added[0]} must be listed in {self.FILE} or be removed.")

    @classmethod
    def _names(cls, directory: Path) -> list[str]:
        relative = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
        return sorted(
            path.as_posix()
            for path in relative
            if path.as_posix() != cls.FILE and not any(part.startswith(".") for part in path.parts)
        )


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_inside(name: Any) -> bool:
    path = PurePosixPath(name)
    return path.as_posix() == name and not path.is_absolute() and ".." not in path.parts

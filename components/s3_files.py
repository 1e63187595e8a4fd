"""Files on s3:// and minio:// for TFX's own file functions, to read; TensorFlow has neither.

Importing this module registers them.
"""

import fnmatch
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar, NamedTuple, cast

from pyarrow import fs
from tfx.dsl.io import filesystem_registry
from tfx.dsl.io.filesystem import Filesystem

from pebr_tf import storage

SCHEMES = ("s3://", "minio://")


def is_s3(path: str) -> bool:
    return path.startswith(SCHEMES)


def open_file(path: str) -> BinaryIO:
    file_system, inner = storage.file_system_and_path(path)
    return cast(BinaryIO, file_system.open_input_file(inner))


def info_of(path: str) -> fs.FileInfo:
    """Kind, size and time of change of a file or folder, which may be missing."""
    file_system, inner = storage.file_system_and_path(path)
    return file_system.get_file_info(inner)


class FileStatistics(NamedTuple):
    """What TFX asks of a file, by TensorFlow's names."""

    length: int
    mtime_nsec: int
    is_directory: bool


class S3Files(Filesystem):
    """The functions of `tfx.dsl.io.fileio` that read inputs."""

    SUPPORTED_SCHEMES: ClassVar = list(SCHEMES)

    @staticmethod
    def open(name: str, mode: str = "rb") -> Any:
        if mode != "rb":
            raise NotImplementedError(mode)
        return open_file(name)

    @staticmethod
    def exists(path: str) -> bool:
        return info_of(path).type != fs.FileType.NotFound

    @staticmethod
    def isdir(path: str) -> bool:
        return info_of(path).type == fs.FileType.Directory

    @staticmethod
    def stat(path: str) -> FileStatistics:
        info = info_of(path)
        return FileStatistics(info.size, info.mtime_ns, info.type == fs.FileType.Directory)

    @staticmethod
    def glob(pattern: str) -> list[str]:
        file_system, inner = storage.file_system_and_path(pattern)
        scheme, _, _ = pattern.partition("://")
        return sorted(f"{scheme}://{found}" for found in _matches(file_system, inner.split("/")))


def _matches(file_system: fs.FileSystem, parts: list[str]) -> Iterator[str]:
    """Paths that match a pattern level by level: `*` does not go beyond a slash."""
    fixed = next((n for n, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    if fixed == len(parts):
        if file_system.get_file_info("/".join(parts)).type != fs.FileType.NotFound:
            yield "/".join(parts)
        return
    folder = fs.FileSelector("/".join(parts[:fixed]), allow_not_found=True)
    for found in file_system.get_file_info(folder):
        if fnmatch.fnmatchcase(found.base_name, parts[fixed]):
            if fixed == len(parts) - 1:
                yield found.path
            elif found.type == fs.FileType.Directory:
                yield from _matches(file_system, [*found.path.split("/"), *parts[fixed + 1 :]])


# Before TensorFlow's, which claims s3:// too.
filesystem_registry.DEFAULT_FILESYSTEM_REGISTRY.register(S3Files, priority=-1)

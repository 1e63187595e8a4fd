"""Results of steps on disk, each under a name that changes with whatever decides it."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pebr_tf.files import replacing_file

if TYPE_CHECKING:
    from experiments.step import Step

_RESULT = "result.json"
# Stands in the JSON for an array, with its number.
_ARRAY = "__array__"


class Store:
    """A folder of results.

    A result is one archive: step.json (title and key, for people), result.json, and an .npy for
    each array. It is written to a temporary name and renamed, so that a run that was stopped
    leaves whole results only.

    Args:
      root: The folder; made when the first result is saved.
    """

    def __init__(self, root: Path):
        self._root = Path(root)
        # Read once: the code that runs is that of the beginning, whatever is edited meanwhile.
        self._digests: dict[str, str] = {}

    def name(self, step: Step) -> str:
        """SHA-256 over the key of `step`, the bytes of its sources and the names of its needs.

        Raises:
          ValueError: A source is no module and no package.
        """
        parts = {
            "key": dict(step.key),
            "sources": [self._digest(source) for source in sorted(set(step.sources))],
            "needs": [self.name(need) for need in step.needs],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def load(self, step: Step) -> dict[str, Any] | None:
        """The result of `step`; None if there is none, or no whole one.

        Raises:
          ValueError: A source is no module and no package.
        """
        path = self._path(step)
        try:
            with zipfile.ZipFile(path) as archive:
                # Reading a member checks its CRC.
                result = json.loads(archive.read(_RESULT))
                restored = _restored(result, archive)
        # A damaged archive can fail in many ways, and all mean the same: compute it anew.
        except Exception:
            return None
        return restored if isinstance(restored, dict) else None

    def save(self, step: Step, result: Mapping[str, Any]) -> None:
        """Keeps the result of `step`.

        Args:
          step: What was computed.
          result: Nested mappings and sequences of plain JSON values, NumPy scalars and arrays.

        Raises:
          ValueError: A key is no text, or an array has objects.
          TypeError: A value is none of these.
        """
        arrays: list[np.ndarray] = []
        plain = _plain(result, arrays)
        about = {"title": step.title, "key": dict(step.key)}
        with (
            replacing_file(self._path(step)) as temporary,
            zipfile.ZipFile(temporary, "w") as archive,
        ):
            archive.writestr("step.json", json.dumps(about, indent=2, sort_keys=True))
            archive.writestr(_RESULT, json.dumps(plain))
            for number, array in enumerate(arrays):
                with archive.open(f"{number}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)

    def _path(self, step: Step) -> Path:
        return self._root / f"{self.name(step)}.npz"

    def _digest(self, source: str) -> str:
        if source not in self._digests:
            self._digests[source] = _digest_of(source)
        return self._digests[source]


def _digest_of(source: str) -> str:
    """SHA-256 over the .py files of a module or package, which is not imported for it."""
    top, *rest = source.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        raise ValueError(f"A source must be a module or a package. Received: {source!r}.")
    origin = Path(spec.origin)
    place = (origin.parent if origin.name == "__init__.py" else origin.with_suffix("")).joinpath(
        *rest
    )
    module = place.with_suffix(".py")
    files = sorted(place.rglob("*.py")) if place.is_dir() else [module] * module.is_file()
    if not files:
        raise ValueError(f"A source must be a module or a package. Received: {source!r}.")
    digest = hashlib.sha256(source.encode())
    for file in files:
        content = file.read_bytes()
        inside = file.relative_to(place.parent).as_posix()
        digest.update(f"\0{inside}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _plain(value: Any, arrays: list[np.ndarray]) -> Any:
    """`value` as JSON; its arrays are appended to `arrays`."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key == _ARRAY:
                raise ValueError(
                    f"Keys of a result must be texts other than {_ARRAY!r}. Received: {key!r}."
                )
        return {key: _plain(inner, arrays) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, arrays) for inner in value]
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}
    return value.item() if isinstance(value, np.generic) else value


def _restored(value: Any, archive: zipfile.ZipFile) -> Any:
    """The inverse of `_plain`; sequences come back as lists."""
    if isinstance(value, list):
        return [_restored(inner, archive) for inner in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        content = io.BytesIO(archive.read(f"{value[_ARRAY]}.npy"))
        return np.lib.format.read_array(content, allow_pickle=False)
    return {key: _restored(inner, archive) for key, inner in value.items()}

"""Results of steps on disk, each under a name that changes with whatever decides it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pebr_tf.files import replacing_file

if TYPE_CHECKING:
    from experiments.step import Step

_DIGEST_BYTES = hashlib.sha256().digest_size


class Store:
    """A folder of results.

    A result is one file: a SHA-256 of the rest, and the pickled result. It is written to a
    temporary name and renamed, so that a run that was stopped leaves whole results only.

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
        try:
            content = self._path(step).read_bytes()
        except FileNotFoundError:
            return None
        digest, pickled = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if digest != hashlib.sha256(pickled).digest():
            return None
        result: dict[str, Any] = pickle.loads(pickled)
        return result

    def save(self, step: Step, result: Mapping[str, Any]) -> None:
        """Keeps the result of `step`.

        Args:
          step: What was computed.
          result: Nested mappings and sequences of plain JSON values, NumPy scalars and arrays.
        """
        pickled = pickle.dumps(_plain(result))
        with replacing_file(self._path(step)) as temporary:
            temporary.write_bytes(hashlib.sha256(pickled).digest() + pickled)

    def _path(self, step: Step) -> Path:
        return self._root / f"{self.name(step)}.pickle"

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


def _plain(value: Any) -> Any:
    """`value` with lists for sequences and plain numbers for those of NumPy."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value

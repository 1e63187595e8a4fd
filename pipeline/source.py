"""A digest of the code that a component runs, so that an edit of it invalidates the cache.

TFX looks at inputs and settings only. What a component runs is its module and all that it imports
of this project, directly or through others; an edit elsewhere leaves the cache alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("pebr_tf", "components", "pipeline", "serving")
ROOT = Path(__file__).parents[1]


def source_digest(module: str, root: Path = ROOT) -> str:
    """Hex digest of a module, of those that it imports, and of their names.

    Args:
      module: Dotted name, such as `components.pusher.executor`.
      root: Folder of the packages.

    Raises:
      ValueError: There is no such module.
    """
    first = _file(module, root)
    if first is None:
        raise ValueError(f"{module} must be a module of {', '.join(PACKAGES)}.")
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file(name, root)
        if path is None or name in files:
            continue
        files[name] = path
        waiting += _imported(path)
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(files[name].read_bytes()).digest())
    return digest.hexdigest()


def _file(module: str, root: Path) -> Path | None:
    """The file of a module of ours."""
    if module.split(".")[0] not in PACKAGES:
        return None
    path = root.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _imported(path: Path) -> Iterator[str]:
    """Every name that a file imports, wherever it stands, and the packages above it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # What follows `import` may be a module or something inside of one.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))

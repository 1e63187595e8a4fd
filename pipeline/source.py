"""A digest of the code that a component runs, so that an edit of it invalidates the cache.

TFX looks at inputs and settings only. What a component runs is its module and all that it imports
of this project, directly or through others; an edit elsewhere leaves the cache alone. Of a package,
which brings together more than one of its users needs, only what is asked for by name counts.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("pebr_tf", "components", "pipeline", "serving")
ROOT = Path(__file__).parents[1]
# How progress is shown changes no result.
IGNORED = ("pipeline.display",)
# What is asked of a module: some names, or all that it has.
ALL = "*"


def source_digest(module: str, root: Path = ROOT) -> str:
    """Hex digest of a module, of those that it imports, and of their names.

    Args:
      module: Dotted name, such as `components.pusher.executor`.
      root: Folder of the packages.

    Raises:
      ValueError: There is no such module.
    """
    if _file(module, root) is None:
        raise ValueError(
            f"module must be one of the packages {', '.join(PACKAGES)}. Received: {module}."
        )
    files: dict[str, Path] = {}
    done: set[tuple[str, str]] = set()
    waiting = list(_asked(module, ALL))
    while waiting:
        asked = waiting.pop()
        name, wanted = asked
        path = _file(name, root)
        if path is None or asked in done or name in IGNORED:
            continue
        done.add(asked)
        files[name] = path
        waiting += _imported(path, wanted)
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


def _asked(module: str, name: str) -> Iterator[tuple[str, str]]:
    """A module with the name that is asked of it, and the packages above, which run first."""
    parts = module.split(".")
    yield from ((".".join(parts[:end]), "") for end in range(1, len(parts)))
    yield module, name


def _imported(path: Path, wanted: str) -> Iterator[tuple[str, str]]:
    """The modules that a file imports, and the names that it asks of them.

    Args:
      path: The file.
      wanted: A name that others ask of it; of a package's file, imports count that bind this name,
        or one that the file uses itself.
    """
    try:
        used, imports = _parsed(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} {error}") from None
    whole = path.name != "__init__.py" or wanted == ALL
    for bound, module, name in imports:
        if whole or bound in (wanted, ALL) or bound in used:
            yield from _asked(module, name)


@functools.lru_cache(maxsize=1_000)
def _parsed(text: str) -> tuple[frozenset[str], tuple[tuple[str, str, str], ...]]:
    """The names that a text uses, and its imports, wherever they stand.

    Returns:
      Names, and of each import the name that it binds, the module, and what is asked of that.

    Raises:
      ValueError: A relative import.
    """
    nodes = list(ast.walk(ast.parse(text)))
    imports = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports.append((alias.asname or alias.name.split(".")[0], alias.name, ALL))
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError("must import by whole names. Received: a relative import.")
            for alias in node.names:
                bound = alias.asname or alias.name
                imports.append((bound, str(node.module), alias.name))
                # What follows `import` may be a module itself.
                imports.append((bound, f"{node.module}.{alias.name}", ALL))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)), tuple(imports)

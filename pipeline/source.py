"""A digest of the code of a component, so that an edit of the code invalidates the cache.

The cache keys of TFX hold inputs and settings only. The code of a component is its module and all
modules of this project that it imports, directly or indirectly, with the HTML and CSS beside them;
other edits keep the cache valid.
Packages re-export more than one user needs, so only the names that are imported from them count.
"""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("pebr_tf", "components", "pipeline", "serving")
ROOT = Path(__file__).parents[1]
# The display of progress does not change results.
IGNORED = ("pipeline.display",)
# Stands for all names of a module.
ALL = "*"


def source_digest(module: str, root: Path = ROOT) -> str:
    """Hex digest of a module below `root` (a dotted name) and all modules that it imports."""
    if _file(module, root) is None:
        raise ValueError(
            f"module must be one of the packages {', '.join(PACKAGES)}. Received: {module}."
        )
    files: dict[str, Path] = {}
    done: set[tuple[str, str]] = set()
    waiting = list(_with_packages(module, ALL))
    while waiting:
        name, wanted = request = waiting.pop()
        path = _file(name, root)
        if path is None or request in done or name in IGNORED:
            continue
        done.add(request)
        files[name] = path
        waiting += _imported(path, wanted)
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(files[name].read_bytes()).digest())
    # In an order that does not depend on the root.
    for folder in sorted({path.parent for path in files.values()}):
        for template in sorted(folder.iterdir()):
            if template.suffix in (".html", ".css"):
                digest.update(hashlib.sha256(template.read_bytes()).digest())
    return digest.hexdigest()


def project_digest(root: Path = ROOT) -> str:
    """Hex digest of all modules of the project."""
    files = sorted(path for name in PACKAGES for path in (root / name).rglob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _file(module: str, root: Path) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    path = root.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _with_packages(module: str, name: str) -> Iterator[tuple[str, str]]:
    """A module with the name that is imported from it, and its parent packages."""
    parts = module.split(".")
    yield from ((".".join(parts[:end]), "") for end in range(1, len(parts)))
    yield module, name


def _imported(path: Path, wanted: str) -> Iterator[tuple[str, str]]:
    """The modules that a file imports, and the names that it imports from them.

    `wanted` is the name that is imported from the file. In an `__init__.py`, only imports count
    that bind this name, or a name that the file itself uses.
    """
    try:
        used, imports = _parsed(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} {error}") from None
    whole = path.name != "__init__.py" or wanted == ALL
    for bound, module, name in imports:
        if whole or bound in (wanted, ALL) or bound in used:
            yield from _with_packages(module, name)


@functools.lru_cache(maxsize=1_000)
def _parsed(text: str) -> tuple[frozenset[str], tuple[tuple[str, str, str], ...]]:
    """The names that a text uses, and its imports at any level.

    For each import: the name that it binds, the module, and the imported name. Raises a ValueError
    for a relative import.
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
                # The imported name may be a module.
                imports.append((bound, f"{node.module}.{alias.name}", ALL))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)), tuple(imports)

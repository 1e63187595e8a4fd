"""Which module imports which: from statements, and from strings that name a module."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Each may import itself and what stands before it.
PACKAGES = ("pebr_tf", "serving", "components", "pipeline")
RESEARCH = ("experiments", "benchmarks")
# `module.path`, `module.path.attribute` or `module.path:attribute`.
_NAME = re.compile(rf"(?:{'|'.join(PACKAGES + RESEARCH)})(?:\.\w+)+(?::\w+)?")


@cache
def files(package):
    """The modules of a package, by dotted name; the package itself is one of them."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(source, module="", is_package=False):
    """All names that a module imports, with attributes, in any scope and also through strings."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: -node.level + is_package or None]
                base = ".".join([*parents, *filter(None, [node.module])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and _NAME.fullmatch(str(node.value)):
            found.add(node.value.replace(":", "."))
    return found


def module_of(name):
    """The project's module that a dotted name belongs to: itself, or the longest that exists."""
    package = name.split(".")[0]
    known = files(package) if package in PACKAGES + RESEARCH else {}
    parts = name.split(".")
    candidates = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((each for each in candidates if each in known), None)


@cache
def imported_names(module):
    path = files(module.split(".")[0])[module]
    text = path.read_text(encoding="utf-8")
    return frozenset(imports(text, module, path.name == "__init__.py"))


def imported_modules(module):
    found = map(module_of, imported_names(module))
    return {each for each in found if each is not None and each != module}


def reachable(starts):
    """The modules that importing `starts` may import, now or later, with their packages."""
    found: set[str] = set()
    queue = [*starts]
    while queue:
        parts = queue.pop().split(".")
        for module in (".".join(parts[:end]) for end in range(1, len(parts) + 1)):
            if module not in found:
                found.add(module)
                queue += imported_modules(module)
    return found

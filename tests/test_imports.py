"""Imports point one way: pipeline -> components -> serving -> pebr_tf, and pebr_tf stays light."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ["pebr_tf", "serving", "components", "pipeline"]
HEAVY = {"tfx", "apache_beam", "ml_metadata", "tensorflow_transform", "tensorflow_data_validation"}


def imported_roots(source: str) -> set[str]:
    """Top-level names of every absolute import, wherever in the file it stands."""
    roots = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots.add(node.module.split(".")[0])
    return roots


def violations(package: str, source: str) -> set[str]:
    """What a file of `package` imports but must not."""
    forbidden = set(ORDER[ORDER.index(package) + 1 :]) | {"tests", "benchmarks"}
    if package == "pebr_tf":
        forbidden |= HEAVY
    return imported_roots(source) & forbidden


@pytest.mark.parametrize("package", ORDER)
def test_no_file_imports_upwards(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for file in files:
        assert not violations(package, file.read_text(encoding="utf-8")), file


def test_the_check_sees_what_it_should():
    assert violations("pebr_tf", "def f():\n    from apache_beam import Map") == {"apache_beam"}
    assert violations("serving", "import components.pusher") == {"components"}
    assert violations("serving", "import pebr_tf.config\nfrom . import components") == set()
    assert violations("pipeline", "import components, serving, tfx") == set()

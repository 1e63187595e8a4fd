"""Imports point one way, without cycles; every module and every config key is used."""

import ast
import contextlib
import re
from collections import Counter
from graphlib import TopologicalSorter

import pytest
from import_graph import (
    PACKAGES,
    RESEARCH,
    ROOT,
    files,
    imported_modules,
    imported_names,
    imports,
    module_of,
    reachable,
)

from pebr_tf.config import Config
from pebr_tf.config.section import leaves

# The requirements of [pipeline]; the library and the service work without them.
HEAVY = {"tfx", "apache_beam", "ml_metadata", "tensorflow_transform", "tensorflow_data_validation"}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_upwards(package):
    forbidden = {*PACKAGES[PACKAGES.index(package) + 1 :], "tests", *RESEARCH}
    forbidden |= HEAVY if package in ("pebr_tf", "serving") else set()
    for module in files(package):
        roots = {name.split(".")[0] for name in imported_names(module)}
        assert not roots & forbidden, module


def sub_package(module):
    """`serving.service` for all modules of that folder."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("package", PACKAGES)
def test_sub_packages_form_no_cycle(package):
    graph = {}
    for module in files(package):
        edges = graph.setdefault(sub_package(module), set())
        imported = imported_modules(module)
        edges |= {sub_package(each) for each in imported if each.startswith(f"{package}.")}
        edges.discard(sub_package(module))
    # The package itself is imported before each of its modules.
    graph.pop(package)
    # Raises CycleError.
    TopologicalSorter(graph).prepare()


def entry_modules():
    """What a user, a container or TFX can name: entry points, documented imports, `python -m`."""
    yield "pebr_tf.cli.main"
    yield from (f"{package}.cli" for package in PACKAGES if (ROOT / package / "cli").exists())
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for line in re.findall(r"^ *(?:>>> )?((?:from|import) \w.*)$", page.read_text(), re.M):
            # A line of prose may begin with either word.
            with contextlib.suppress(SyntaxError):
                yield from filter(None, map(module_of, imports(line)))
    for path in (*ROOT.glob("*/Dockerfile"), *ROOT.glob("*/*/Dockerfile.*"), ROOT / "Makefile"):
        yield from filter(None, map(module_of, re.findall(r"-m ([a-z_.]+)", path.read_text())))


def test_every_module_can_be_reached_without_a_test():
    unreached = {module for package in PACKAGES for module in files(package)}
    unreached -= reachable([*entry_modules()])
    assert sorted(unreached) == []


# What tells the version of Python or of a library; entry points are something else.
VERSION = re.compile(
    r"\bversion_info\b|\.__version__"
    r"|\bimportlib(\.metadata(?! import entry_points$)| import metadata)",
    re.MULTILINE,
)


def test_one_module_asks_for_versions():
    asking = {
        module
        for package in PACKAGES
        for module, path in files(package).items()
        if VERSION.search(path.read_text(encoding="utf-8"))
    }
    assert asking == {"pebr_tf.libraries"}


def test_a_class_name_is_used_once():
    names = Counter(
        node.name
        for package in (*PACKAGES, *RESEARCH, "tests")
        for path in files(package).values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_the_graph_has_what_it_should():
    assert imports("def f():\n    from apache_beam import Map") == {"apache_beam.Map"}
    assert imports("import components.pusher, tfx") == {"components.pusher", "tfx"}
    assert imports("run_fn = 'pipeline.trainer.run_fn'") == {"pipeline.trainer.run_fn"}
    assert imports("TARGET = 'serving.cli.query:query'") == {"serving.cli.query.query"}
    assert imports("'See pebr_tf.config for more.'") == set()
    assert imports("from . import b\nfrom ..c import d", "p.a.x") == {"p.a.b", "p.c.d"}
    assert imports("from . import b", "p.a", is_package=True) == {"p.a.b"}
    assert module_of("pebr_tf.config.Config") == "pebr_tf.config"
    assert module_of("numpy.linalg") is None


# Redundant, but written out: the three shares must sum to 1.
IMPLIED = {"strata.tail"}
# The runner looks these up by the name of a component; tests/pipeline checks that each has a key.
BY_COMPONENT = "cloud.resources."


def attributes_read():
    return {
        node.attr
        for package in PACKAGES
        for module, path in files(package).items()
        if not module.startswith("pebr_tf.config")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def test_every_key_is_read_by_code_outside_the_configuration():
    read = attributes_read()
    unread = {path for path, key in leaves(Config) if key.name not in read}
    assert {path for path in unread if not path.startswith(BY_COMPONENT)} == IMPLIED

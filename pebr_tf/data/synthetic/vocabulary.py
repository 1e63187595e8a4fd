"""The words of the synthetic shop, from vocabulary.yaml: departments, categories, brands, models.

The words of a query determine its constraints: no word names two kinds of things, and inside a
category no two attributes share a value. Two queries with different constraints never read the
same.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pebr_tf.data.synthetic import attributes


@dataclass(frozen=True)
class Category:
    """A kind of item: its name, the brands that make it (the largest first), its attributes."""

    name: str
    brands: tuple[str, ...]
    attributes: tuple[attributes.Attribute, ...]


@dataclass(frozen=True)
class Department:
    """Categories (the largest first) that share a style of model names, as in `mate50pro`."""

    name: str
    suffixes: tuple[str, ...]
    categories: tuple[Category, ...]


def _departments() -> tuple[Department, ...]:
    words = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return tuple(
        Department(
            name,
            ("", *words["suffixes"][department["suffixes"]].split()),
            tuple(_category(*entry) for entry in department["categories"].items()),
        )
        for name, department in words["departments"].items()
    )


def _category(name: str, words: dict[str, Any]) -> Category:
    chosen = (getattr(attributes, each.upper()) for each in words["attributes"].split())
    return Category(name, tuple(words["brands"].split()), tuple(chosen))


DEPARTMENTS = _departments()

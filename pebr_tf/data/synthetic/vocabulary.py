"""The words of the synthetic shop, from vocabulary.yaml.

The words of a query determine its constraints: no word names two kinds of things, inside a
category no two attributes share a value, and a value belongs to one name (an item that is `10kg`
has the weight 10kg, whatever its category). Two queries with different constraints never read the
same.
"""

from dataclasses import dataclass
from pathlib import Path

import yaml

SLOTS = 4  # The most attributes that a category has.
VALUES = 12  # The most values that an attribute has.


@dataclass(frozen=True)
class Attribute:
    """A property of the items of a category; vocabulary.yaml explains the fields."""

    name: str
    values: tuple[str, ...]
    by_model: bool = False
    share: float = 1.0
    leading: bool = False


@dataclass(frozen=True)
class Category:
    """A kind of item: its name, the brands that make it (the largest first), its attributes."""

    name: str
    brands: tuple[str, ...]
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True)
class Department:
    """Categories (the largest first) that share a style of model names, as in `mate50pro`."""

    name: str
    suffixes: tuple[str, ...]
    categories: tuple[Category, ...]


def _departments() -> tuple[Department, ...]:
    words = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    attributes = {
        key: Attribute(**{**entry, "values": tuple(entry["values"])})
        for key, entry in words["attributes"].items()
    }

    def category(name: str, entry: dict[str, str]) -> Category:
        chosen = (attributes[each] for each in entry["attributes"].split())
        return Category(name, tuple(entry["brands"].split()), tuple(chosen))

    return tuple(
        Department(
            name,
            ("", *words["suffixes"][department["suffixes"]].split()),
            tuple(category(*entry) for entry in department["categories"].items()),
        )
        for name, department in words["departments"].items()
    )


DEPARTMENTS = _departments()

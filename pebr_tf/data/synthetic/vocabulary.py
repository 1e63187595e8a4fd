"""The words of the synthetic shop, from vocabulary.yaml.

The words of a query determine its constraints: no word names two kinds of things, inside a
category no two attributes share a value, and a value belongs to one name (an item that is `10kg`
has the weight 10kg, whatever its category). Two queries with different constraints never read the
same.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

SERIES_PER_LINE = 2
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


_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def _departments() -> tuple[Department, ...]:
    attributes = {
        key: Attribute(**{**entry, "values": tuple(entry["values"])})
        for key, entry in _WORDS["attributes"].items()
    }

    def category(name: str, entry: dict[str, str]) -> Category:
        chosen = (attributes[each] for each in entry["attributes"].split())
        return Category(name, tuple(entry["brands"].split()), tuple(chosen))

    return tuple(
        Department(
            name,
            ("", *_WORDS["suffixes"][department["suffixes"]].split()),
            tuple(category(*entry) for entry in department["categories"].items()),
        )
        for name, department in _WORDS["departments"].items()
    )


DEPARTMENTS = _departments()


def series_words(generator: np.random.Generator) -> tuple[str, ...]:
    """Draws the words that model names begin with, as `mate` in `mate50pro`.

    There are `SERIES_PER_LINE` words per line (a brand of a category), in the order of the lines,
    all different.
    """
    flagships = {
        (brand, category): word
        for category, brands in _WORDS["flagships"].items()
        for brand, word in brands.items()
    }
    beginnings, endings = _WORDS["beginnings"].split(), _WORDS["endings"].split()
    pairs = (beginning + ending for beginning in beginnings for ending in endings)
    invented = [word for word in pairs if word not in flagships.values()]
    lines = [
        (brand, category.name)
        for department in DEPARTMENTS
        for category in department.categories
        for brand in category.brands
    ]
    words = iter(generator.permutation(invented)[: SERIES_PER_LINE * len(lines)].tolist())
    return tuple(
        flagships.get(line, next(words)) if number == 0 else next(words)
        for line in lines
        for number in range(SERIES_PER_LINE)
    )

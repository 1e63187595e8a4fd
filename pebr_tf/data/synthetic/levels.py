"""How broad a query can be: from one attribute or a department down to a model in one colour.

A level fixes one place of the shop (its base) and the number of attribute values on top. Its
groupings sort the items into groups, and each group is a possible query with the group's items as
the relevant ones. An item is in at most `PAIRS_PER_ITEM` groups, which bounds the relevant pairs of
any number of queries.
"""

import enum
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pebr_tf.data.synthetic.catalogue import Catalogue
from pebr_tf.data.synthetic.shop import shop
from pebr_tf.data.synthetic.vocabulary import SLOTS, VALUES


class Base(enum.Enum):
    """The place of the shop that a query names; a line is a brand within a category."""

    SHOP = enum.auto()
    DEPARTMENT = enum.auto()
    CATEGORY = enum.auto()
    BRAND = enum.auto()
    LINE = enum.auto()
    MODEL = enum.auto()


@dataclass(frozen=True)
class Level:
    """A kind of query: its name in `queries.*`, and the place that it names.

    It requires 0 to 2 attribute values. `share` is its share of the queries, if the catalogue has
    that many.
    """

    name: str
    base: Base
    attributes: int
    share: float


# The shares give the default catalogue a median of about 20 relevant items and a long tail.
LEVELS = (
    Level("department", Base.DEPARTMENT, 0, 0.01),
    Level("attribute", Base.SHOP, 1, 0.05),
    Level("category", Base.CATEGORY, 0, 0.05),
    Level("department_attribute", Base.DEPARTMENT, 1, 0.12),
    Level("brand", Base.BRAND, 0, 0.06),
    Level("brand_attribute", Base.BRAND, 1, 0.16),
    Level("category_attribute", Base.CATEGORY, 1, 0.24),
    Level("brand_category", Base.LINE, 0, 0.10),
    Level("category_two_attributes", Base.CATEGORY, 2, 0.22),
    Level("brand_category_attribute", Base.LINE, 1, 0.13),
    Level("brand_category_two_attributes", Base.LINE, 2, 0.02),
    Level("model", Base.MODEL, 0, 0.05),
    Level("model_attribute", Base.MODEL, 1, 0.02),
)


@dataclass(frozen=True)
class Grouping:
    """One way to sort items into groups.

    Attributes:
      level: Index into `LEVELS`.
      slots: Attribute slots that tell the groups apart, as many as the level asks for.
      anywhere: A value counts in whichever slot it stands, because the base spans categories.
    """

    level: int
    slots: tuple[int, ...]
    anywhere: bool = False

    def keys(self, catalogue: Catalogue) -> npt.NDArray[np.int64]:
        """Returns the groups of every item.

        Returns:
          int64 [passes, N]: an item is in the group of each of its passes (one, or one per slot if
          `anywhere`) and never twice in the same; -1 is none, for an item without the attribute.
        """
        base = _base(catalogue, LEVELS[self.level].base)
        if not self.anywhere:
            return self._slot_keys(catalogue, base)[np.newaxis]
        words = shop()
        category = words.line_category[catalogue.line]
        keys = np.empty((SLOTS, len(catalogue)), np.int64)
        for slot in range(SLOTS):
            value = words.value_number[category, slot, catalogue.attributes[slot]]
            keys[slot] = np.where(value >= 0, base * len(words.values) + value, -1)
        return keys

    def decode(
        self, keys: npt.NDArray[np.int64], catalogue: Catalogue
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int16]]:
        """Decodes groups [K].

        Returns:
          The base, int64 [K], and the numbers of the attribute values, -1 for none, int16 [K, 2].
        """
        words = shop()
        values = np.full((len(keys), 2), -1, np.int16)
        if self.anywhere:
            keys, values[:, 0] = np.divmod(keys, len(words.values))
            return keys, values
        codes = np.empty((len(self.slots), len(keys)), np.int64)
        for column in reversed(range(len(self.slots))):
            keys, codes[column] = np.divmod(keys, VALUES)
        if self.slots:
            category = _category(catalogue, LEVELS[self.level].base, keys)
            for column, slot in enumerate(self.slots):
                values[:, column] = words.value_number[category, slot, codes[column] + 1]
        return keys, values

    def _slot_keys(
        self, catalogue: Catalogue, base: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        missing = np.zeros(len(base), bool)
        for slot in self.slots:
            codes = catalogue.attributes[slot]
            base *= VALUES
            base += codes
            base -= 1
            missing |= codes == 0
        base[missing] = -1
        return base


def _groupings(number: int, level: Level) -> list[Grouping]:
    if level.attributes and level.base in (Base.SHOP, Base.DEPARTMENT, Base.BRAND):
        return [Grouping(number, (), anywhere=True)]
    return [
        Grouping(number, slots) for slots in itertools.combinations(range(SLOTS), level.attributes)
    ]


GROUPINGS = tuple(
    grouping for number, level in enumerate(LEVELS) for grouping in _groupings(number, level)
)
PAIRS_PER_ITEM = sum(SLOTS if grouping.anywhere else 1 for grouping in GROUPINGS)


def _base(catalogue: Catalogue, base: Base) -> npt.NDArray[np.int64]:
    """Number of every item's place in the shop, a new array, int64 [N]."""
    words = shop()
    if base is Base.SHOP:
        return np.zeros(len(catalogue), np.int64)
    if base is Base.MODEL:
        return catalogue.model.astype(np.int64)
    if base is Base.LINE:
        return catalogue.line.astype(np.int64)
    if base is Base.BRAND:
        return words.line_brand[catalogue.line].astype(np.int64)
    category = words.line_category[catalogue.line]
    if base is Base.DEPARTMENT:
        category = words.category_department[category]
    return category.astype(np.int64)


def _category(
    catalogue: Catalogue, base: Base, numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Category of places that lie in one: models, lines or categories, [K]."""
    if base is Base.MODEL:
        numbers = catalogue.model_line[numbers].astype(np.int64)
    if base is not Base.CATEGORY:
        numbers = shop().line_category[numbers].astype(np.int64)
    return numbers

"""How broad a query can be: from one attribute or a department down to a model in one colour.

A kind fixes one part of the shop and the number of attribute values on top. Its
groupings sort the items into groups, and each group is a possible query with the group's items as
the relevant ones. An item is in at most `PAIRS_PER_ITEM` groups, which bounds the relevant pairs of
any number of queries.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pebr_tf.data.synthetic.catalogue import Catalogue
from pebr_tf.data.synthetic.shop import shop
from pebr_tf.data.synthetic.vocabulary import SLOTS, VALUES


@dataclass(frozen=True)
class QueryKind:
    """A kind of query.

    Attributes:
      name: As in `queries.*`.
      shop_part: Part of the shop that a query fixes; see `Catalogue.shop_part`.
      attributes: Attribute values that it requires, 0 to 2.
      share: Its share of the queries, if the catalogue has that many.
    """

    name: str
    shop_part: str
    attributes: int
    share: float

    @property
    def named(self) -> tuple[str, ...]:
        """What the text of a query names of that part; a model is named with its brand."""
        return {"shop": (), "line": ("brand", "category"), "model": ("brand", "model")}.get(
            self.shop_part, (self.shop_part,)
        )


# The shares give the default catalogue a median of about 20 relevant items and a long tail.
QUERY_KINDS = (
    QueryKind("department", "department", 0, 0.01),
    QueryKind("attribute", "shop", 1, 0.05),
    QueryKind("category", "category", 0, 0.05),
    QueryKind("department_attribute", "department", 1, 0.12),
    QueryKind("brand", "brand", 0, 0.06),
    QueryKind("brand_attribute", "brand", 1, 0.16),
    QueryKind("category_attribute", "category", 1, 0.24),
    QueryKind("brand_category", "line", 0, 0.10),
    QueryKind("category_two_attributes", "category", 2, 0.22),
    QueryKind("brand_category_attribute", "line", 1, 0.13),
    QueryKind("brand_category_two_attributes", "line", 2, 0.02),
    QueryKind("model", "model", 0, 0.05),
    QueryKind("model_attribute", "model", 1, 0.02),
)


@dataclass(frozen=True)
class Grouping:
    """One way to sort items into groups.

    Attributes:
      kind: Index into `QUERY_KINDS`.
      slots: Attribute slots that tell the groups apart, as many as the kind requires.
      anywhere: A value counts in whichever slot it stands, because the part spans categories.
    """

    kind: int
    slots: tuple[int, ...]
    anywhere: bool = False

    def keys(self, catalogue: Catalogue) -> npt.NDArray[np.int64]:
        """The groups of every item.

        Returns:
          int64 [passes, N]: an item is in the group of each of its passes (one, or one per slot if
          `anywhere`) and never twice in the same; -1 is none, for an item without the attribute.
        """
        base = catalogue.shop_part(QUERY_KINDS[self.kind].shop_part).astype(np.int64)
        if not self.anywhere:
            codes = catalogue.attributes[list(self.slots)]
            for code in codes:
                # In place, because a large catalogue fills the memory.
                base *= VALUES
                base += code
                base -= 1
            base[(codes == 0).any(axis=0)] = -1
            return base[np.newaxis]
        words = shop()
        category = words.line_category[catalogue.line]
        keys = np.empty((SLOTS, len(catalogue)), np.int64)
        for slot in range(SLOTS):
            value = words.value_number[category, slot, catalogue.attributes[slot]]
            keys[slot] = np.where(value >= 0, base * len(words.values) + value, -1)
        return keys

    def values(
        self, keys: npt.NDArray[np.int64], items: npt.NDArray[np.int32], catalogue: Catalogue
    ) -> npt.NDArray[np.int16]:
        """What groups [K], each with one item [K], require; see `Constraints.values`."""
        words = shop()
        values = np.full((len(keys), 2), -1, np.int16)
        if self.anywhere:
            values[:, 0] = keys % len(words.values)
        category = words.line_category[catalogue.line[items]]
        for column, slot in enumerate(self.slots):
            codes = catalogue.attributes[slot, items]
            values[:, column] = words.value_number[category, slot, codes]
        return values


def _groupings(number: int, kind: QueryKind) -> list[Grouping]:
    if kind.attributes and kind.shop_part in ("shop", "department", "brand"):
        return [Grouping(number, (), anywhere=True)]
    return [
        Grouping(number, slots) for slots in itertools.combinations(range(SLOTS), kind.attributes)
    ]


GROUPINGS = tuple(
    grouping for number, kind in enumerate(QUERY_KINDS) for grouping in _groupings(number, kind)
)
PAIRS_PER_ITEM = sum(SLOTS if grouping.anywhere else 1 for grouping in GROUPINGS)


@dataclass(frozen=True)
class Constraints:
    """The constraints of the queries (Q); an item is relevant if it meets all of its query's.

    Attributes:
      kind: Index into `QUERY_KINDS`, int8 [Q].
      item: A relevant item of each, int32 [Q].
      values: Required attribute values, as numbered in `Shop`, -1 for none, int16 [Q, 2].
    """

    kind: npt.NDArray[np.int8]
    item: npt.NDArray[np.int32]
    values: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.kind)

    def shop_part(self, catalogue: Catalogue, name: str) -> npt.NDArray[np.integer]:
        """Number of the department, category, brand or model that each names, -1 for none, [Q]."""
        is_named = np.array([name in kind.named for kind in QUERY_KINDS])[self.kind]
        return np.where(is_named, catalogue.shop_part(name)[self.item], -1)

"""The vocabulary as arrays: what the vectorised code looks words and sizes up in.

A *line* is a brand within a category (huawei phones): the finest part of the shop that the
vocabulary fixes. Models and items are drawn inside lines.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pebr_tf.data.synthetic.vocabulary import DEPARTMENTS, SLOTS, VALUES

# How much smaller the next department, category or brand of a list is: weight = rank ** -exponent.
_DEPARTMENT_EXPONENT = 0.8
_CATEGORY_EXPONENT = 0.6
_BRAND_EXPONENT = 0.8
Member = TypeVar("Member")


@dataclass(frozen=True)
class Shop:
    """Departments (D), categories (C), brands (B) and lines (L) by number.

    The first word of a name tells the axis: `line_category` is the category of each line, [L].

    Attributes:
      suffixes: Endings of model names, string [D * suffixes per department]; null is no ending.
      line_weight: Share of the catalogue, float64 [L].
      line_variants: Items that a model can have without two being equal, int32 [L].
      slot_values: Number of values of each attribute, int16 [C, SLOTS]; 0: there is none.
      slot_share: Share of the models that have it, float64 [C, SLOTS].
      slot_stride: Step of the variant number that moves the value, int32 [C, SLOTS]; 0: the value
        is the model's.
      value_number: Number of the value in the arrays below, int16 [C, SLOTS, VALUES + 1], by the
        code of the value in its slot; -1 for code 0, which is "has none".
      values: Attribute values of all categories, string [V], all different.
      named_values: The same as `name=value`, string [V].
      leading: The value stands before the category in a title, bool [V].
    """

    departments: pa.Array
    categories: pa.Array
    brands: pa.Array
    suffixes: pa.Array
    suffixes_per_department: int
    category_department: npt.NDArray[np.int16]
    line_category: npt.NDArray[np.int16]
    line_brand: npt.NDArray[np.int16]
    line_weight: npt.NDArray[np.float64]
    line_variants: npt.NDArray[np.int32]
    slot_values: npt.NDArray[np.int16]
    slot_share: npt.NDArray[np.float64]
    slot_stride: npt.NDArray[np.int32]
    value_number: npt.NDArray[np.int16]
    values: pa.Array
    named_values: pa.Array
    leading: npt.NDArray[np.bool_]


@functools.cache
def shop() -> Shop:
    categories = [category for department in DEPARTMENTS for category in department.categories]
    lines = [(place, brand) for place, each in enumerate(categories) for brand in each.brands]
    brands = list(dict.fromkeys(brand for _, brand in lines))
    attribute_of_value = {
        value: attribute
        for category in categories
        for attribute in category.attributes
        for value in attribute.values
    }
    number_of_value = {value: number for number, value in enumerate(attribute_of_value)}
    shape = len(categories), SLOTS
    slot_values, slot_share = np.zeros(shape, np.int16), np.zeros(shape)
    slot_stride = np.zeros(shape, np.int32)
    value_number = np.full((*shape, VALUES + 1), -1, np.int16)
    variants = np.ones(len(categories), np.int32)
    for place, category in enumerate(categories):
        for slot, attribute in enumerate(category.attributes):
            count = len(attribute.values)
            slot_values[place, slot], slot_share[place, slot] = count, attribute.share
            numbers = [number_of_value[value] for value in attribute.values]
            value_number[place, slot, 1 : count + 1] = numbers
            if not attribute.by_model:
                slot_stride[place, slot] = variants[place]
                variants[place] *= count
    line_category = np.array([place for place, _ in lines], np.int16)
    suffixes = [suffix or None for department in DEPARTMENTS for suffix in department.suffixes]
    sizes = [len(department.categories) for department in DEPARTMENTS]
    return Shop(
        departments=pa.array([department.name for department in DEPARTMENTS]),
        categories=pa.array([category.name for category in categories]),
        brands=pa.array(brands),
        suffixes=pa.array(suffixes),
        suffixes_per_department=len(DEPARTMENTS[0].suffixes),
        category_department=np.repeat(np.arange(len(DEPARTMENTS), dtype=np.int16), sizes),
        line_category=line_category,
        line_brand=np.array([brands.index(brand) for _, brand in lines], np.int16),
        line_weight=_line_weight(),
        line_variants=variants[line_category],
        slot_values=slot_values,
        slot_share=slot_share,
        slot_stride=slot_stride,
        value_number=value_number,
        values=pa.array(attribute_of_value),
        named_values=pa.array(f"{a.name}={value}" for value, a in attribute_of_value.items()),
        leading=np.array([attribute.leading for attribute in attribute_of_value.values()]),
    )


def _line_weight() -> npt.NDArray[np.float64]:
    weights = []
    for department, large in _shares(DEPARTMENTS, _DEPARTMENT_EXPONENT):
        for category, part in _shares(department.categories, _CATEGORY_EXPONENT):
            brands = _shares(category.brands, _BRAND_EXPONENT)
            weights += [large * part * small for _, small in brands]
    return np.array(weights)


def _shares(members: Sequence[Member], exponent: float) -> Iterator[tuple[Member, float]]:
    weights = np.arange(1, len(members) + 1, dtype=np.float64) ** -exponent
    return zip(members, weights / weights.sum(), strict=True)

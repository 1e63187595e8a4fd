"""The vocabulary as arrays: what the vectorised code looks words and sizes up in.

A *line* is a brand within a category (huawei phones): the finest part of the shop that the
vocabulary fixes. Models and items are drawn inside lines.
"""

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pebr_tf.data.synthetic.vocabulary import DEPARTMENTS, SLOTS, VALUES, Category

# How much smaller the next department, category or brand of a list is: weight = rank ** -exponent.
_DEPARTMENT_EXPONENT = 0.8
_CATEGORY_EXPONENT = 0.6
_BRAND_EXPONENT = 0.8


@dataclass(frozen=True)
class Shop:
    """Departments (D), categories (C), brands (B) and lines (L) by number.

    Attributes:
      departments: Names, string [D].
      categories: Names, string [C].
      brands: Names, string [B].
      suffixes: Endings of model names, string [D * suffixes per department]; null is no ending.
      suffixes_per_department: How many endings a department has.
      category_department: int16 [C].
      line_category: int16 [L].
      line_brand: int16 [L].
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
    """Returns the shop of the built-in vocabulary."""
    categories = [category for department in DEPARTMENTS for category in department.categories]
    brands = list(dict.fromkeys(brand for category in categories for brand in category.brands))
    brand_number = {brand: number for number, brand in enumerate(brands)}
    category_department = np.array(
        [number for number, department in enumerate(DEPARTMENTS) for _ in department.categories],
        np.int16,
    )
    line_category = np.array(
        [number for number, category in enumerate(categories) for _ in category.brands], np.int16
    )
    slot_values, slot_share, slot_stride = _slots(categories)
    variants = (np.where(slot_stride > 0, slot_values, 1)).prod(axis=1)
    attribute_of_value = {
        value: attribute
        for category in categories
        for attribute in category.attributes
        for value in attribute.values
    }
    return Shop(
        departments=pa.array([department.name for department in DEPARTMENTS]),
        categories=pa.array([category.name for category in categories]),
        brands=pa.array(brands),
        suffixes=pa.array(
            [suffix or None for department in DEPARTMENTS for suffix in department.suffixes]
        ),
        suffixes_per_department=len(DEPARTMENTS[0].suffixes),
        category_department=category_department,
        line_category=line_category,
        line_brand=np.array(
            [brand_number[brand] for category in categories for brand in category.brands], np.int16
        ),
        line_weight=_line_weight(),
        line_variants=variants[line_category].astype(np.int32),
        slot_values=slot_values,
        slot_share=slot_share,
        slot_stride=slot_stride,
        value_number=_value_number(categories, list(attribute_of_value)),
        values=pa.array(attribute_of_value),
        named_values=pa.array(f"{a.name}={value}" for value, a in attribute_of_value.items()),
        leading=np.array([attribute.leading for attribute in attribute_of_value.values()]),
    )


def _line_weight() -> npt.NDArray[np.float64]:
    departments = _falling(len(DEPARTMENTS), _DEPARTMENT_EXPONENT)
    return np.concatenate(
        [
            share * category_share * _falling(len(category.brands), _BRAND_EXPONENT)
            for share, department in zip(departments, DEPARTMENTS, strict=True)
            for category_share, category in zip(
                _falling(len(department.categories), _CATEGORY_EXPONENT),
                department.categories,
                strict=True,
            )
        ]
    )


def _falling(count: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def _slots(
    categories: list[Category],
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    values = np.zeros((len(categories), SLOTS), np.int16)
    share = np.zeros((len(categories), SLOTS), np.float64)
    stride = np.zeros((len(categories), SLOTS), np.int32)
    for number, category in enumerate(categories):
        step = 1
        for slot, attribute in enumerate(category.attributes):
            values[number, slot] = len(attribute.values)
            share[number, slot] = attribute.share
            if not attribute.by_model:
                stride[number, slot] = step
                step *= len(attribute.values)
    return values, share, stride


def _value_number(categories: list[Category], values: list[str]) -> npt.NDArray[np.int16]:
    number_of_value = {value: number for number, value in enumerate(values)}
    numbers = np.full((len(categories), SLOTS, VALUES + 1), -1, np.int16)
    for number, category in enumerate(categories):
        for slot, attribute in enumerate(category.attributes):
            for code, value in enumerate(attribute.values, start=1):
                numbers[number, slot, code] = number_of_value[value]
    return numbers

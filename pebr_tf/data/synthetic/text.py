"""Numbers to words: item ids, titles, model names and query texts, a column at a time."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pebr_tf.data.synthetic.catalogue import Catalogue
from pebr_tf.data.synthetic.levels import Constraints
from pebr_tf.data.synthetic.shop import shop
from pebr_tf.data.synthetic.vocabulary import SLOTS

_ID_DIGITS = 7


def item_ids(indices: npt.NDArray[np.integer], items: int) -> pa.Array:
    """The ids [n] of items, such as `i0000123`; all ids of a catalogue have the same length."""
    digits = pc.cast(pa.array(indices), pa.string())
    padded = pc.utf8_lpad(digits, max(_ID_DIGITS, len(str(items - 1))), "0")
    return pc.binary_join_element_wise("i", padded, "")


def catalogue_table(catalogue: Catalogue, start: int, stop: int) -> pa.Table:
    """The items from `start` to before `stop` with their words.

    The columns are item_id, title, department, category, brand, model and attributes, the last as
    `name=value` with a semicolon between two.
    """
    words = shop()
    line = catalogue.line[start:stop]
    category = words.line_category[line]
    values = [
        words.value_number[category, slot, catalogue.attributes[slot, start:stop]]
        for slot in range(SLOTS)
    ]
    leading = [np.where(words.leading[value], value, -1) for value in values]
    trailing = [np.where(words.leading[value], -1, value) for value in values]
    brand_name = _look_up(words.brands, words.line_brand[line])
    category_name = _look_up(words.categories, category)
    stem, suffix = _model_parts(catalogue, catalogue.model[start:stop])
    title = _join(
        " ",
        brand_name,
        stem,
        suffix,
        *(_look_up(words.values, value) for value in leading),
        category_name,
        *(_look_up(words.values, value) for value in trailing),
    )
    return pa.table(
        {
            "item_id": item_ids(np.arange(start, stop), len(catalogue)),
            "title": title,
            "department": _look_up(words.departments, words.category_department[category]),
            "category": category_name,
            "brand": brand_name,
            "model": _join("", stem, suffix),
            "attributes": _join(";", *(_look_up(words.named_values, value) for value in values)),
        }
    )


def query_texts(
    catalogue: Catalogue, constraints: Constraints, generator: np.random.Generator
) -> pa.Array:
    """Queries as people write them, string [Q]: `phone`, `black phone`, `huawei phone 5g`.

    Two things vary by chance: the first attribute stands before or after the category, and the
    suffix of a model is written apart or not.
    """
    words = shop()
    names = _names(catalogue, constraints)
    model = constraints.shop_part(catalogue, "model")
    stem, suffix = _model_parts(catalogue, model)
    apart = pa.array(generator.random(len(constraints)) < 0.5)
    before = (generator.random(len(constraints)) < 0.5) & (model < 0)
    first, second = constraints.values.T
    return _join(
        " ",
        names["brand"],
        pc.if_else(apart, stem, pc.binary_join_element_wise(stem, pc.fill_null(suffix, ""), "")),
        pc.if_else(apart, suffix, pa.scalar(None, pa.string())),
        _look_up(words.values, np.where(before, first, -1)),
        names["department"],
        names["category"],
        _look_up(words.values, np.where(before, -1, first)),
        _look_up(words.values, second),
    )


def constraint_columns(catalogue: Catalogue, constraints: Constraints) -> dict[str, pa.Array]:
    """What each query asks for, string columns [Q], empty where it asks for nothing.

    The columns are department, category, brand, model and attributes, spelled as in the catalogue.
    """
    values = (_look_up(shop().named_values, value) for value in constraints.values.T)
    model = constraints.shop_part(catalogue, "model")
    columns = {
        **_names(catalogue, constraints),
        "model": _join("", *_model_parts(catalogue, model)),
        "attributes": _join(";", *values),
    }
    return {name: pc.fill_null(column, "") for name, column in columns.items()}


def _names(catalogue: Catalogue, constraints: Constraints) -> dict[str, pa.Array]:
    """Department, category and brand that each query names, string [Q], null for none."""
    words = shop()
    lists = {"department": words.departments, "category": words.categories, "brand": words.brands}
    return {name: _look_up(lists[name], constraints.shop_part(catalogue, name)) for name in lists}


def _model_parts(catalogue: Catalogue, model: npt.NDArray[np.integer]) -> tuple[pa.Array, pa.Array]:
    """Stem and suffix of the model names, as `mate50` and `pro`; null where the model is -1."""
    named = model >= 0
    series = _look_up(
        pa.array(catalogue.series), np.where(named, catalogue.model_series[model], -1)
    )
    number = pc.cast(pa.array(catalogue.model_number[model]), pa.string())
    suffix = _look_up(shop().suffixes, np.where(named, catalogue.model_suffix[model], -1))
    return pc.binary_join_element_wise(series, number, ""), suffix


def _look_up(words: pa.Array, places: npt.NDArray[np.integer]) -> pa.Array:
    return words.take(pa.array(places, mask=places < 0))


def _join(separator: str, *parts: pa.Array) -> pa.Array:
    """Joins the parts that are not null, string [n].

    `null_handling="skip"` would say it in one call, but it loses the rows that are null in all
    parts (pyarrow 10).
    """
    separated = [pc.binary_join_element_wise(separator, part, "") for part in parts]
    joined = pc.binary_join_element_wise(
        *separated, "", null_handling="replace", null_replacement=""
    )
    return pc.utf8_slice_codeunits(joined, len(separator), 2**31 - 1)

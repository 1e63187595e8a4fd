"""The vocabulary keeps the promises that make a query's words say what it asks for."""

import itertools

import numpy as np

from pebr_tf.data.synthetic.vocabulary import DEPARTMENTS, series_words

CATEGORIES = [category for department in DEPARTMENTS for category in department.categories]
ATTRIBUTES = [attribute for category in CATEGORIES for attribute in category.attributes]
LINES = [(brand, category.name) for category in CATEGORIES for brand in category.brands]


def words(phrases):
    return {word for phrase in phrases for word in phrase.split()}


def test_no_word_stands_for_two_kinds_of_thing():
    kinds = {
        "place": words([category.name for category in CATEGORIES])
        | words([department.name for department in DEPARTMENTS]),
        "brand": words([brand for brand, _ in LINES]),
        "value": words([value for attribute in ATTRIBUTES for value in attribute.values]),
        "suffix": words([suffix for department in DEPARTMENTS for suffix in department.suffixes]),
        "series": set(series_words(np.random.default_rng(0))),
    }
    for (one, left), (other, right) in itertools.combinations(kinds.items(), 2):
        assert not left & right, (one, other)


def test_a_value_belongs_to_one_attribute_name():
    names: dict[str, set[tuple[str, bool]]] = {}
    for attribute in ATTRIBUTES:
        for value in attribute.values:
            names.setdefault(value, set()).add((attribute.name, attribute.leading))
    assert {value: name for value, name in names.items() if len(name) > 1} == {}


def test_names_and_the_values_of_a_category_differ():
    for category in CATEGORIES:
        values = [value for attribute in category.attributes for value in attribute.values]
        assert len(values) == len(set(values)), category.name
    assert len({category.name for category in CATEGORIES}) == len(CATEGORIES)
    assert len(set(LINES)) == len(LINES)


def test_every_category_can_tell_the_items_of_a_model_apart():
    for category in CATEGORIES:
        assert any(not attribute.by_model for attribute in category.attributes), category.name
        # `share` is about models: an item that lacks what tells it apart would equal another.
        assert all(a.share == 1.0 for a in category.attributes if not a.by_model), category.name

"""Items have different, well-formed words; the catalogue's shape is that of a shop."""

import numpy as np
import pytest

from pebr_tf.data.synthetic.catalogue import make_catalogue
from pebr_tf.data.synthetic.text import catalogue_table, item_ids
from pebr_tf.data.synthetic.vocabulary import DEPARTMENTS, SERIES_PER_LINE

CATEGORIES = {kind.name: (each, kind) for each in DEPARTMENTS for kind in each.categories}
ALLOWED = {
    name: {f"{a.name}={value}" for a in category.attributes for value in a.values}
    for name, (_, category) in CATEGORIES.items()
}


@pytest.fixture(scope="module")
def rows(default_world):
    return catalogue_table(default_world.catalogue, 0, 20_000).to_pylist()


def test_every_item_is_where_the_vocabulary_puts_it_and_its_title_has_all_its_words(rows):
    for row in rows:
        department, category = CATEGORIES[row["category"]]
        assert row["department"] == department.name
        assert row["brand"] in category.brands
        attributes = row["attributes"].split(";")
        assert set(attributes) <= ALLOWED[row["category"]]
        names, values = zip(*(attribute.split("=") for attribute in attributes), strict=True)
        assert len(names) == len(set(names))
        assert {a.name for a in category.attributes if a.share == 1.0} <= set(names)
        brand, rest = row["title"].split(" ", 1)
        assert brand == row["brand"]
        for phrase in (*values, row["category"]):
            assert f" {phrase} " in f" {rest} "
        assert rest.replace(" ", "").startswith(row["model"])


def test_ids_and_titles_are_unique_and_a_model_name_belongs_to_one_line(rows):
    for name in ("item_id", "title"):
        assert len({row[name] for row in rows}) == 20_000
    lines: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        lines.setdefault(row["model"], set()).add((row["brand"], row["category"]))
    assert all(len(owners) == 1 for owners in lines.values())
    assert 3_000 < len(lines) < 10_000


def test_models_stay_apart_when_a_line_has_more_than_its_first_names(monkeypatch):
    monkeypatch.setattr("pebr_tf.data.synthetic.catalogue._NUMBERS", 5)
    catalogue = make_catalogue(100_000, np.random.default_rng(1))
    suffixes = len(DEPARTMENTS[0].suffixes)
    assert np.bincount(catalogue.model_line).max() > 2 * SERIES_PER_LINE * suffixes * 5
    names = np.stack([catalogue.model_series, catalogue.model_number, catalogue.model_suffix])
    assert np.unique(names, axis=1).shape[1] == len(catalogue.model_line)
    items = np.vstack([catalogue.model[np.newaxis], catalogue.attributes])
    assert np.unique(items, axis=1).shape[1] == 100_000


def test_popularity_is_zipf(default_world):
    popularity = np.sort(default_world.catalogue.popularity)[::-1]
    assert popularity.sum() == pytest.approx(1.0)
    ranks = np.arange(1, len(popularity) + 1)
    slope = np.polyfit(np.log(ranks), np.log(popularity), 1)[0]
    assert slope == pytest.approx(-0.9, abs=1e-6)


@pytest.mark.parametrize("items", [100, 101, 10_000_000, 10_000_001, 50_000_000])
def test_item_ids_are_the_zero_padded_numbers(items):
    numbers = np.unique(np.array([0, 1, 9, 10, 99, 123_456, items - 1]) % items)
    width = max(7, len(str(items - 1)))
    assert item_ids(numbers, items).to_pylist() == [f"i{number:0{width}d}" for number in numbers]
    assert item_ids(numbers[:0], items).to_pylist() == []

"""Places of items by their ids: as a dictionary finds them, whatever the ids look like."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebr_tf.data import item_places
from pebr_tf.data.item_places import ItemColumns, ItemPlaces, fast_hashes


@given(st.lists(st.text(max_size=20), unique=True), st.lists(st.text(max_size=20)))
def test_places_are_those_of_a_dictionary(ids, others):
    places, wanted = ItemPlaces(pa.array(ids, pa.string())), [*others, *ids]
    expected = {text: place for place, text in enumerate(ids)}
    found = places.find(pa.array(wanted, pa.string()))
    assert found.tolist() == [expected.get(text, -1) for text in wanted]
    assert len(places) == len(ids)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_chunks_and_slices_are_read_at_their_offsets(kind):
    ids = pa.chunked_array([pa.array(["skipped", "a", "item"], kind)[1:], pa.array(["b"], kind)])
    assert ItemPlaces(ids).find(pa.array(["x", "b", "item", "a", ""])[1:]).tolist() == [2, 1, 0, -1]


def test_texts_that_differ_in_a_byte_a_length_or_an_order_have_other_hashes():
    texts = ["", "\0", "\0\0", "a", "a\0", "12345678", "12345678\0", "1234567", "12345678a"]
    texts += [f"{number:020}" for number in range(20_000)]
    texts += [f"{number:012}{'x' * 8}"[::-1] for number in range(20_000)]
    assert len(set(fast_hashes(pa.array(texts)).tolist())) == len(texts)


def test_the_table_is_made_once_and_a_lookup_reads_only_what_it_looks_up(monkeypatch):
    places, hashed = ItemPlaces(pa.array([str(number) for number in range(5_000)])), []
    monkeypatch.setattr(
        item_places, "fast_hashes", lambda texts: hashed.append(len(texts)) or fast_hashes(texts)
    )
    places.find(pa.array(["1", "2", "none"]))
    assert hashed == [3]


ITEMS = pa.table({"item_id": ["b", "a"], "title": ["B", "A"], "price": pa.array([2.0, 1.0])})


def test_columns_of_items_by_their_ids():
    found = ItemColumns(ITEMS).of(pa.array(["a", "?", "b", ""]))
    assert {name: column.to_pylist() for name, column in found.items()} == {
        "title": ["A", "", "B", ""],
        "price": [1.0, 0.0, 2.0, 0.0],
    }
    assert found["title"].type == pa.string()
    empty = ItemColumns(ITEMS.slice(0, 0)).of(pa.array(["a"]))
    assert empty["title"].to_pylist() == [""]


@pytest.mark.slow
def test_texts_of_more_than_two_gibibytes():
    """Arrow's `string` counts bytes in 32 bits."""
    text = pa.array(["x" * (2**30 - 1)])
    items = pa.table(
        {"item_id": pa.chunked_array([["a"], ["b"], ["c"]]), "title": pa.chunked_array([text] * 3)}
    )
    (found,) = ItemColumns(items).of(pa.array(["c"])).values()
    assert pc.binary_length(found).to_pylist() == [2**30 - 1]

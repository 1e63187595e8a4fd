"""Which inputs the towers have."""

from pebr_tf.config import Features
from pebr_tf.models.fields import Field, item_fields, query_fields, table_sizes


def test_a_query_of_text_shares_its_vocabulary_with_the_items_text():
    features = Features(item_text=("title", "description"))
    (query,) = query_fields(features)
    assert query == Field("query_tokens", "query", "text", "tokens")
    assert {field.vocabulary for field in item_fields(features)} == {"tokens"}


def test_a_query_that_is_an_id_is_looked_up_whole():
    assert query_fields(Features(query_kind="id")) == (
        Field("query_tokens", "query", "whole", "queries"),
    )


def test_the_items_fields_in_order():
    features = Features(
        item_text=("title",), item_categories=("brand",), item_numbers=("price",), item_id=True
    )
    assert item_fields(features) == (
        Field("item_title_tokens", "title", "text", "tokens"),
        Field("item_brand_value", "brand", "whole", "values_brand"),
        Field("item_price_number", "price", "number", ""),
        Field("item_id_value", "item_id", "whole", "items"),
    )


def test_tables_have_the_words_and_the_buckets_and_numbers_have_none():
    fields = item_fields(Features(item_categories=("brand",), item_numbers=("price",)))
    sizes = table_sizes(fields, {"tokens": 10, "values_brand": 3, "unused": 99}, 5)
    assert sizes == {"tokens": 15, "values_brand": 8}

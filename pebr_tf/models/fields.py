"""The inputs of the two towers, their columns and their vocabularies.

The graph that makes the ids, the towers that embed them and the signatures share one list, so that
they cannot disagree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pebr_tf.config import Features

TOKENS = "tokens"
QUERY_IDS = "queries"


@dataclass(frozen=True)
class Field:
    """One input of a tower.

    Attributes:
      name: Its name after the transform.
      column: The column that it is made from.
      kind: Text that is split into tokens, a value that is looked up whole, or a number.
      vocabulary: The vocabulary of its ids; empty for a number.
    """

    name: str
    column: str
    kind: Literal["text", "whole", "number"]
    vocabulary: str = ""


def query_fields(features: Features) -> tuple[Field, ...]:
    if features.query_kind == "id":
        return (Field("query_tokens", "query", "whole", QUERY_IDS),)
    return (Field("query_tokens", "query", "text", TOKENS),)


def item_fields(features: Features) -> tuple[Field, ...]:
    texts = [Field(f"item_{c}_tokens", c, "text", TOKENS) for c in features.item_text]
    whole = [Field(f"item_{c}_value", c, "whole", f"values_{c}") for c in features.item_categories]
    numbers = [Field(f"item_{c}_number", c, "number") for c in features.item_numbers]
    ids = [Field("item_id_value", "item_id", "whole", "items")] if features.item_id else []
    return (*texts, *whole, *numbers, *ids)


def table_sizes(
    fields: tuple[Field, ...], sizes: Mapping[str, int], buckets: int
) -> dict[str, int]:
    """Rows of the table of each vocabulary: its `sizes` words, then the buckets of other words."""
    names = dict.fromkeys(field.vocabulary for field in fields if field.vocabulary)
    return {name: sizes[name] + buckets for name in names}

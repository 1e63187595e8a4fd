"""The inputs of the two towers, their columns and their vocabularies.

The graph that makes the ids, the towers that embed them and the signatures share one list, so that
they cannot disagree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pebr_tf.config import Features, Towers

TOKENS = "tokens"
QUERY_IDS = "queries"
# What a pretrained encoder makes of the texts of either side.
QUERY_ENCODED, ITEM_ENCODED = "query_encoded", "item_encoded"


@dataclass(frozen=True)
class Field:
    """One input of a tower.

    Attributes:
      name: Its name after the transform.
      column: The column that it is made from.
      kind: Text that is split into tokens, a value that is looked up whole, a number, or text that
        a pretrained encoder reads.
      vocabulary: The vocabulary of its ids; empty for a number and for encoded text.
      more: Further columns, whose texts follow that of the first.
    """

    name: str
    column: str
    kind: Literal["text", "whole", "number", "encoded"]
    vocabulary: str = ""
    more: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *self.more)


# The fields that Transform makes: all but encoded text.
_WITHOUT_ENCODER = Towers()


def query_fields(features: Features, towers: Towers = _WITHOUT_ENCODER) -> tuple[Field, ...]:
    if features.query_kind == "id":
        return (Field("query_tokens", "query", "whole", QUERY_IDS),)
    tokens = Field("query_tokens", "query", "text", TOKENS)
    return _texts(QUERY_ENCODED, [tokens], towers)


def item_fields(features: Features, towers: Towers = _WITHOUT_ENCODER) -> tuple[Field, ...]:
    tokens = [Field(f"item_{c}_tokens", c, "text", TOKENS) for c in features.item_text]
    whole = [Field(f"item_{c}_value", c, "whole", f"values_{c}") for c in features.item_categories]
    numbers = [Field(f"item_{c}_number", c, "number") for c in features.item_numbers]
    ids = [Field("item_id_value", "item_id", "whole", "items")] if features.item_id else []
    texts = _texts(ITEM_ENCODED, tokens, towers) if tokens else ()
    return (*texts, *whole, *numbers, *ids)


def _texts(name: str, tokens: list[Field], towers: Towers) -> tuple[Field, ...]:
    """The tokens of the texts of a side, or all texts as an encoder reads them, or both."""
    if towers.kind != "bert":
        return tuple(tokens)
    first, *more = (field.column for field in tokens)
    encoded = Field(name, first, "encoded", more=tuple(more))
    return (encoded, *tokens) if towers.combine else (encoded,)


def table_sizes(
    fields: tuple[Field, ...], sizes: Mapping[str, int], buckets: int
) -> dict[str, int]:
    """Rows of the table of each vocabulary: its `sizes` words, then the buckets of other words."""
    names = dict.fromkeys(field.vocabulary for field in fields if field.vocabulary)
    return {name: sizes[name] + buckets for name in names}

"""What ingestion reads of the click log and of the catalogue, and which rows of them are good."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pebr_tf.config import Data, Features, Split
from pebr_tf.data.click_log import check_clicks, check_clicks_and_items, check_items
from pebr_tf.data.tables import Batch
from pebr_tf.errors import UserError

# Features of an Example that come from the click, not from the item.
CLICK_FEATURES = ("query", "item_id", "clicks", "timestamp")


@dataclass(frozen=True)
class IngestSettings:
    """What is read and what is written.

    Attributes:
      texts: Columns of text that are features of an item.
      numbers: Columns of numbers that are features of an item.
      payload: Further text columns, only in the Examples of the catalogue.
      cut: Text columns of which only the first `characters` are read, outside the catalogue.
    """

    data: Data
    split: Split
    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    payload: tuple[str, ...]
    cut: tuple[str, ...]
    characters: int

    @classmethod
    def of(cls, data: Data, split: Split, features: Features) -> IngestSettings:
        texts = tuple(dict.fromkeys(features.item_text + features.item_categories))
        numbers = features.item_numbers
        _require(set(texts) & set(numbers), "item_text and item_categories", "be no item_numbers")
        _require(
            {*texts, *numbers} & {*CLICK_FEATURES}, "item_*", "have other names than a click's"
        )
        # A column that is a feature, or the id, is there already.
        elsewhere = {*texts, *numbers, "item_id"}
        payload = tuple(name for name in data.payload_columns if name not in elsewhere)
        cut = tuple(name for name in features.item_text if name not in features.item_categories)
        return cls(data, split, texts, numbers, payload, cut, features.characters)

    @property
    def click_columns(self) -> tuple[list[str], list[str]]:
        """Required and optional columns of the click log."""
        data = self.data
        required = [data.query_column, data.item_column]
        optional = [name for name in (data.clicks_column, data.timestamp_column) if name]
        if self.split.by == "time":
            required.append(optional.pop())
        if data.catalogue is None:
            required += self.item_columns
        required = list(dict.fromkeys(required))
        return required, [name for name in optional if name not in required]

    @property
    def item_columns(self) -> list[str]:
        names = (self.data.item_column, *self.texts, *self.numbers, *self.payload)
        return list(dict.fromkeys(names))

    def good_items(self, batch: Batch) -> Batch:
        texts = (*self.texts, *self.payload)
        return check_items(batch, self.data.item_column, texts, self.numbers)

    def good_clicks(self, batch: Batch, now: int, known: pa.Array) -> Batch:
        """The good rows of a click log beside a catalogue with the ids `known`."""
        return check_clicks(batch, self.data, now, known)

    def good_clicks_and_items(self, batch: Batch, now: int) -> tuple[Batch, Batch]:
        """The good rows of a click log that has the columns of its items, as clicks and items."""
        texts = (*self.texts, *self.payload)
        return check_clicks_and_items(batch, self.data, now, texts, self.numbers)


def _require(clash: set[str], names: str, requirement: str) -> None:
    if clash:
        raise UserError(
            f"Columns of features.{names} must {requirement}. Received: {', '.join(sorted(clash))}."
        )

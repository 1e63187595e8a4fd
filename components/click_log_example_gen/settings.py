"""The settings that the component reads, and their form as exec properties.

The exec properties hold nothing else, so that no other setting invalidates the cache.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pebr_tf.config import Config, Data, Features, Split
from pebr_tf.errors import UserError

# The other keys of `data` belong to data validation.
DATA_KEYS = (
    "click_log",
    "catalogue",
    "format",
    "query_column",
    "item_column",
    "clicks_column",
    "timestamp_column",
    "payload_columns",
    "reject_limit",
    "statistics_rows",
)
FEATURE_KEYS = ("item_text", "item_categories", "item_numbers")
# Features of an Example that come from the click, not from the item.
CLICK_FEATURES = ("query", "item_id", "clicks", "timestamp")


@dataclass(frozen=True)
class IngestSettings:
    """What is read and what is written.

    Attributes:
      data: Files and the names of their columns; other keys have their defaults.
      payload: Further text columns, only in the Examples of the catalogue.
    """

    data: Data
    split: Split
    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    payload: tuple[str, ...]

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
        """Required columns of the catalogue."""
        names = (self.data.item_column, *self.texts, *self.numbers, *self.payload)
        return list(dict.fromkeys(names))


def exec_properties(config: Config) -> dict[str, str]:
    """The settings as JSON.

    Raises:
      UserError: The names or types of columns conflict.
    """
    parts = {
        "data": _picked(config.data.to_mapping(), DATA_KEYS),
        "split": config.split.to_mapping(),
        "features": _picked(config.features.to_mapping(), FEATURE_KEYS),
    }
    properties = {name: json.dumps(part, sort_keys=True) for name, part in parts.items()}
    from_exec_properties(properties)
    return properties


def from_exec_properties(properties: dict[str, Any]) -> IngestSettings:
    """The settings that `exec_properties` wrote."""
    data = Data.from_mapping(json.loads(properties["data"]))
    features = json.loads(properties["features"])
    Features.from_mapping({**features, "item_id": True})
    texts = tuple(dict.fromkeys(features["item_text"] + features["item_categories"]))
    numbers = tuple(features["item_numbers"])
    _require(set(texts) & set(numbers), "item_text and item_categories", "be no item_numbers")
    _require({*texts, *numbers} & {*CLICK_FEATURES}, "item_*", "have other names than a click's")
    # A column that is a feature, or the id, is there already.
    elsewhere = {*texts, *numbers, "item_id"}
    payload = tuple(name for name in data.payload_columns if name not in elsewhere)
    return IngestSettings(
        data=data,
        split=Split.from_mapping(json.loads(properties["split"])),
        texts=texts,
        numbers=numbers,
        payload=payload,
    )


def _picked(mapping: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: mapping[key] for key in keys}


def _require(clash: set[str], names: str, requirement: str) -> None:
    if clash:
        raise UserError(
            f"Columns of features.{names} must {requirement}. Received: {', '.join(sorted(clash))}."
        )

"""What of the configuration the component reads, and its way through exec properties.

Only this is in the exec properties, so that no other setting makes a run read the log anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pebr_tf.config import Config, Data, Features, Split
from pebr_tf.errors import UserError

# Of the others this component reads nothing: they belong to data validation.
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
)
FEATURE_KEYS = ("item_text", "item_categories", "item_numbers")
# Features of an Example that a click has by itself.
CLICK_FEATURES = ("query", "item_id", "clicks", "timestamp")


@dataclass(frozen=True)
class Settings:
    """What is read and what is written.

    Attributes:
      data: Files and the names of their columns; keys that are not read have their defaults.
      split: Which clicks train, calibrate, test.
      texts: Columns of an item that its Examples have as text.
      numbers: Those that they have as numbers.
      payload: Further columns of text that only the catalogue's Examples have.
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
      UserError: Columns whose names or types are in each other's way.
    """
    parts = {
        "data": _picked(config.data.to_mapping(), DATA_KEYS),
        "split": config.split.to_mapping(),
        "features": _picked(config.features.to_mapping(), FEATURE_KEYS),
    }
    properties = {name: json.dumps(part, sort_keys=True) for name, part in parts.items()}
    from_exec_properties(properties)
    return properties


def from_exec_properties(properties: dict[str, Any]) -> Settings:
    """The settings that `exec_properties` wrote."""
    data = Data.from_mapping(json.loads(properties["data"]))
    features = json.loads(properties["features"])
    Features.from_mapping({**features, "item_id": True})
    texts = tuple(dict.fromkeys(features["item_text"] + features["item_categories"]))
    numbers = tuple(features["item_numbers"])
    _require(set(texts) & set(numbers), "item_text and item_categories", "be no item_numbers")
    _require({*texts, *numbers} & {*CLICK_FEATURES}, "item_*", "have other names than a click's")
    # A number stays one; the id is there anyway.
    elsewhere = {*texts, *numbers, "item_id"}
    payload = tuple(name for name in data.payload_columns if name not in elsewhere)
    return Settings(
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

"""The settings that the component reads as exec properties.

The exec properties hold nothing else, so that no other setting invalidates the cache.
"""

import json
from typing import Any

from pebr_tf.config import Config, Data, Features, Split
from pebr_tf.data.ingest_settings import IngestSettings

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
FEATURE_KEYS = ("item_text", "item_categories", "item_numbers", "max_tokens")


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
    return IngestSettings.of(
        Data.from_mapping(json.loads(properties["data"])),
        Split.from_mapping(json.loads(properties["split"])),
        # The id is always there, so that an item may have no other feature.
        Features.from_mapping({**json.loads(properties["features"]), "item_id": True}),
    )


def _picked(mapping: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: mapping[key] for key in keys}

"""Index-only runs: checks that the model of an earlier run fits the configuration."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pebr_tf.config import AUTO, TOWER_SECTIONS, Config
from pebr_tf.errors import UserError
from pebr_tf.release.towers import TowersDescription

# Most settings that an error lists.
SHOWN = 3


def wanted_of(config: Config) -> dict[str, Any]:
    """The settings that a model must have been trained with.

    A setting that is `auto` fits every model.
    """
    sections = config.to_mapping()
    return {name: sections[name] for name in TOWER_SECTIONS}


def require_fit(model: str, wanted: Mapping[str, Any]) -> None:
    """Checks that a model was trained with the same settings.

    Raises:
      UserError: The settings differ, or the model has no description.
    """
    towers = TowersDescription.find(model)
    if towers is None:
        path = f"{model}/{TowersDescription.FILE}"
        raise UserError(f"the last blessed model must describe itself. Received: no {path}.")
    different = list(_differences(towers.config, wanted))
    if different:
        more = f" and {len(different) - SHOWN} more" if len(different) > SHOWN else ""
        raise UserError(
            "the last blessed model must fit the configuration of an index-only run. "
            f"Received: {'; '.join(different[:SHOWN])}{more}."
        )


def _differences(model: Any, wanted: Any, key: str = "") -> Iterator[str]:
    if isinstance(model, dict) and isinstance(wanted, dict):
        for name in dict.fromkeys((*wanted, *model)):
            inner = f"{key}.{name}" if key else name
            yield from _differences(model.get(name), wanted.get(name), inner)
    elif wanted not in (AUTO, model):
        yield f"{key} {json.dumps(model)} in the model, {json.dumps(wanted)} in the configuration"

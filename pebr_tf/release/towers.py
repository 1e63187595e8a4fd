"""The descriptions that the towers and the query model carry in their SavedModels."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pebr_tf import storage
from pebr_tf.errors import UserError

if TYPE_CHECKING:
    from pebr_tf.distributions.logit import Family

Description = TypeVar("Description", bound="TowersDescription")


@dataclass(frozen=True, kw_only=True)
class TowersDescription:
    """What a program must know about trained towers beside their signatures.

    Attributes:
      family: The logit that they were trained with.
      law: Weights of the law head by name, or None if it was not trained with the towers.
      config: The sections of its configuration that determine the towers.
    """

    FILE: ClassVar[str] = "assets.extra/towers.json"

    family: Family
    dimension: int
    loss: str
    steps: int
    law: dict[str, Any] | None = None
    config: dict[str, Any]

    @classmethod
    def load(cls: type[Description], directory: str | Path) -> Description:
        """Reads the description in a SavedModel's folder, local or remote."""
        path = f"{directory}/{cls.FILE}"
        try:
            content = json.loads(storage.read_bytes(path))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must be a readable JSON file. Received: {error}.") from None
        if not isinstance(content, dict):
            raise UserError(f"{path} must hold a JSON object. Received: {content!r}.")
        keys = [field.name for field in dataclasses.fields(cls)]
        if missing := [key for key in keys if key not in content]:
            raise UserError(f"{path} must have the key {missing[0]}. Received: {sorted(content)}.")
        return cls(**{key: content[key] for key in keys})

    @classmethod
    def find(cls: type[Description], directory: str | Path) -> Description | None:
        """Returns the description, or None if there is none that this version can read."""
        try:
            return cls.load(directory)
        except UserError:
            return None

    def save(self, directory: str | Path) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=2) + "\n"
        storage.write_bytes(f"{directory}/{self.FILE}", text.encode())


@dataclass(frozen=True, kw_only=True)
class QueryModelDescription(TowersDescription):
    """The description of a query model: that of its towers, and what it was exported with.

    `moments` is the fingerprint of the item vectors' moments, which ties the model to its index.
    """

    FILE: ClassVar[str] = "assets.extra/query_model.json"

    policy: str
    moments: str

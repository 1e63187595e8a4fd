"""The size of a click log, which the settings that are `auto` follow."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from pebr_tf import storage
from pebr_tf.errors import UserError

FILE = "log_size.json"


@dataclass(frozen=True)
class LogSize:
    """Size of the training data.

    Attributes:
      rows: Rows of the training split.
      queries: Different queries of the training split.
      items: Items of the catalogue.
    """

    rows: int
    queries: int
    items: int

    @classmethod
    def load(cls, directory: str | Path) -> LogSize:
        """Reads the size that an artifact of examples states, local or remote."""
        path = f"{directory}/{FILE}"
        try:
            return cls(**json.loads(storage.read_bytes(path)))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{path} must state the size of the log. Received: {error}.") from None

    def save(self, directory: str | Path) -> None:
        """Writes the size into an artifact of examples, local or remote."""
        text = json.dumps(dataclasses.asdict(self), indent=2) + "\n"
        storage.write_bytes(f"{directory}/{FILE}", text.encode())

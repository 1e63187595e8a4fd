"""Pointers: what a run must know of earlier runs of its pipeline, in files under `pipeline.root`.

    <root>/pointers/<pipeline>/accepted_statistics.pb   of the train split of the last accepted run
    <root>/pointers/<pipeline>/blessed/<version>.json   one per push: which model, which examples
    <root>/pointers/<pipeline>/models/<name>/           towers that a pointer names

Withdrawn versions are listed beside the releases; see `pebr_tf.release.versions`. All of this is
the same on one machine, on Vertex AI and on Kubeflow, and pipelines do not see each other. No two
pushes write the same file: each writes its own, the towers before the pointer.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from dataclasses import dataclass
from typing import ClassVar

from pebr_tf import storage
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.release.versions import is_version, withdrawn

STATISTICS = "accepted_statistics.pb"
BLESSED, MODELS = "blessed", "models"


@dataclass(frozen=True)
class BlessedModel:
    """A model that was blessed and pushed.

    Attributes:
      model: The version that it was first pushed as. Index-only runs push it again.
      examples: Identifies the examples that it was trained on.
      towers: Name of the folder of its towers.
    """

    FILE: ClassVar[str] = "blessed_model.json"

    model: int
    examples: str
    towers: str

    @classmethod
    def find(cls, directory: str) -> BlessedModel | None:
        """The pointer in an artifact that an earlier run gave; None if this run trained it."""
        path = f"{directory}/{cls.FILE}"
        try:
            return cls.from_json(storage.read_bytes(path), path)
        except FileNotFoundError:
            return None

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, path: str) -> BlessedModel:
        """Reads what `to_json` wrote; an error names `path`."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise UserError(f"{path} must be readable JSON. Received: {error}.") from None
        kinds = {"model": int, "examples": str, "towers": str}
        # Before 0.12, the folder of the towers was named after the version.
        whole = isinstance(content, dict) and {"towers": str(content.get("model")), **content}
        if not whole or {name: type(value) for name, value in whole.items()} != kinds:
            raise UserError(f"{path} must hold a model and its examples. Received: {content!r}.")
        return cls(**whole)


@dataclass(frozen=True)
class Pointers:
    """The pointers of one pipeline.

    Attributes:
      folder: Where they are; see `folder_of`.
      releases: The folder of releases, which states what was withdrawn.
    """

    folder: str
    releases: str

    @staticmethod
    def folder_of(config: Config) -> str:
        return f"{config.pipeline.root}/pointers/{config.pipeline.name}"

    def accepted_statistics(self) -> bytes | None:
        """The statistics of the last accepted run; None before the first."""
        try:
            return storage.read_bytes(f"{self.folder}/{STATISTICS}")
        except FileNotFoundError:
            return None

    def accept(self, statistics: bytes) -> None:
        storage.write_bytes(f"{self.folder}/{STATISTICS}", statistics)

    def newest_model(self, other_than: str | None = None) -> BlessedModel | None:
        """The newest blessed model, or None.

        A model counts if one of its releases is not withdrawn and it was not trained on the
        examples `other_than`. Models are ordered by their first push: an index-only run that
        pushes an older model at the same moment as a newer one does not bring it back.
        """
        stems = (name.removesuffix(".json") for name in storage.names(f"{self.folder}/{BLESSED}"))
        pushed = {int(stem) for stem in stems if is_version(stem)} - set(withdrawn(self.releases))
        newest = None
        for version in sorted(pushed, reverse=True):
            # No model is newer than its release.
            if newest is not None and version <= newest.model:
                break
            path = f"{self.folder}/{BLESSED}/{version}.json"
            found = BlessedModel.from_json(storage.read_bytes(path), path)
            if found.examples != other_than and (newest is None or found.model > newest.model):
                newest = found
        return newest

    def require_newest(self, pushed: BlessedModel) -> None:
        """Rejects a model that was withdrawn, or followed by a newer one, since a run took it."""
        newest = self.newest_model()
        if newest is None or newest.model != pushed.model:
            raise UserError(
                "an index-only run must push the newest blessed model that is not withdrawn: "
                f"run it again. Received: that of release {pushed.model}, where "
                f"{'none is left' if newest is None else f'release {newest.model} has the newest'}."
            )

    def towers(self, blessed: BlessedModel) -> str:
        return f"{self.folder}/{MODELS}/{blessed.towers}"

    def keep_towers(self, towers: str) -> str:
        """Copies the towers of a new model and returns the name of their folder.

        This is done before the push: the pointer then follows the release at once.
        """
        name = uuid.uuid4().hex
        storage.copy_folder(towers, f"{self.folder}/{MODELS}/{name}")
        return name

    def record(self, version: int, blessed: BlessedModel) -> None:
        path = f"{self.folder}/{BLESSED}/{version}.json"
        storage.write_bytes(path, blessed.to_json().encode())

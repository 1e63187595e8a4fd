"""The versions of a model in a folder: found, loaded, labelled and let go as TF Serving does."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc
from stand_in.servable import Refusal, Servable
from tensorflow_serving.apis import get_model_status_pb2, model_pb2

VERSIONS_KEPT = 2
POLL_SECONDS = 1.0

State = get_model_status_pb2.ModelVersionStatus


@dataclass(frozen=True)
class Version:
    """How far a version has come.

    Attributes:
      state: One of the states of `ModelVersionStatus`.
      servable: Of a version that is available.
      failure: Why it could not be loaded, or None.
    """

    state: int
    servable: Servable | None = None
    failure: Refusal | None = None


class ModelVersions:
    """The newest versions of one model; safe for concurrent callers."""

    def __init__(self, name: str, directory: Path, versions_kept: int = VERSIONS_KEPT):
        """Takes the name of the model and the folder of its versions; loads nothing yet."""
        self.name = name
        self._directory = Path(directory)
        self._kept = versions_kept
        self._lock = threading.Lock()
        self._polling = threading.Lock()
        self._versions: dict[int, Version] = {}
        self._labels: dict[str, int] = {}

    def poll(self) -> None:
        """Looks at the folder: loads what is new, then lets go of what is no longer wanted.

        Every version that was there once stays in `statuses`, and one that failed is not tried
        again. A folder that cannot be read changes nothing.
        """
        with self._polling:
            try:
                found = _numbered(self._directory)
            except OSError:
                return
            wanted = sorted(found)[-self._kept :]
            for version in reversed(wanted):
                if not self._is_settled(version):
                    self._load(version, found[version])
            with self._lock:
                for version, each in self._versions.items():
                    if version not in wanted and each.state == State.AVAILABLE:
                        self._versions[version] = Version(State.END)

    def statuses(self, spec: model_pb2.ModelSpec) -> dict[int, Version]:
        """Version -> how far it has come, the newest first; of one version or of all.

        Raises:
          Refusal: No such model, version or label.
        """
        version = self._asked(spec)
        with self._lock:
            known = {} if spec.name != self.name else dict(self._versions)
        if version is None:
            if not known:
                raise _not_found(f"Could not find any versions of model {spec.name}")
            return dict(sorted(known.items(), reverse=True))
        if version not in known:
            raise _not_found(f"Could not find version {version} of model {spec.name}")
        return {version: known[version]}

    def find(self, spec: model_pb2.ModelSpec) -> tuple[int, Servable]:
        """The version that is asked for, or the newest, if it is available.

        Raises:
          Refusal: It is not.
        """
        version = self._asked(spec)
        with self._lock:
            available = {
                number: each.servable
                for number, each in self._versions.items()
                if each.servable is not None and spec.name == self.name
            }
        if version is None and available:
            version = max(available)
        if version not in available:
            asked = (
                f"Latest({spec.name})" if version is None else f"Specific({spec.name}, {version})"
            )
            raise _not_found(f"Servable not found for request: {asked}")
        return version, available[version]

    def configure(self, versions_kept: int, labels: Mapping[str, int]) -> None:
        """Changes how many versions are kept, and what labels mean.

        Raises:
          Refusal: A label for a version that is not available; nothing changes then.
        """
        with self._lock:
            for version in labels.values():
                if self._versions.get(version, Version(State.END)).state != State.AVAILABLE:
                    raise Refusal(
                        grpc.StatusCode.FAILED_PRECONDITION,
                        f"Request to assign label to version {version} of model {self.name}, "
                        f"which is not currently available for inference",
                    )
            self._labels = dict(labels)
            self._kept = versions_kept

    def _asked(self, spec: model_pb2.ModelSpec) -> int | None:
        """The version that a request names, by its number or label, or None."""
        if not spec.name:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "ModelSpec has no name specified.")
        choice = spec.WhichOneof("version_choice")
        if choice == "version":
            return spec.version.value
        if choice is None:
            return None
        with self._lock:
            if spec.name != self.name or spec.version_label not in self._labels:
                raise Refusal(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    f"Unrecognized servable version label: {spec.version_label}",
                )
            return self._labels[spec.version_label]

    def _is_settled(self, version: int) -> bool:
        """Whether a version is available, or failed."""
        with self._lock:
            each = self._versions.get(version)
        return each is not None and (each.state == State.AVAILABLE or each.failure is not None)

    def _load(self, version: int, directory: Path) -> None:
        with self._lock:
            self._versions[version] = Version(State.LOADING)
        try:
            loaded = Version(State.AVAILABLE, Servable(directory))
        except Refusal as refusal:
            loaded = Version(State.END, failure=refusal)
        except Exception as error:
            # Whatever a broken model does, it must not keep the next one from being found.
            failure = Refusal(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")
            loaded = Version(State.END, failure=failure)
        with self._lock:
            self._versions[version] = loaded


def find_base_path(models: Path) -> Path:
    """The folder of versions in `models`: itself, or query_model/ in a folder of releases."""
    linked = Path(models) / "query_model"
    return linked if linked.is_dir() else Path(models)


def has_versions(directory: Path) -> bool:
    """Whether a folder holds a SavedModel under a number."""
    try:
        return any((each / "saved_model.pb").is_file() for each in _numbered(directory).values())
    except OSError:
        return False


def _numbered(directory: Path) -> dict[int, Path]:
    """Version -> folder of its model, of all that are named by a number; or of all releases."""
    found = {int(each.name): each for each in directory.iterdir() if each.name.isdecimal()}
    for version, each in found.items():
        if (each / "query_model").is_dir():
            found[version] = each / "query_model"
    return found


def _not_found(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.NOT_FOUND, message)

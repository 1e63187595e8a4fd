"""The versions in a folder of releases: which there are, and which of them may answer.

<releases>/<version>/                  a release
<releases>/withdrawn.json              versions that may not answer, and why
<releases>/query_model/<version>       link to ../<version>/query_model: TF Serving's base path
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pebr_tf.errors import UserError
from serving.staging import locked

WITHDRAWN = "withdrawn.json"
MODELS = "query_model"
# The APIs and TF Serving count versions in 64 bits.
LARGEST = 2**63 - 1

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class Withdrawal:
    """Why and when a version was taken out of service.

    Attributes:
      reason: One line, or nothing.
      time: ISO 8601 in UTC.
    """

    reason: str
    time: str


def is_version(name: str) -> bool:
    """Whether a folder of this name can be a release: a whole number, written plainly."""
    return name.isdecimal() and str(int(name)) == name and int(name) <= LARGEST


def versions(releases: Path) -> list[int]:
    """The versions in a folder of releases, ascending; none if there is no such folder.

    A link that leads out of the folder is no version of it.
    """
    releases = Path(releases)
    if not releases.is_dir():
        return []
    root = releases.resolve()
    return sorted(
        int(path.name)
        for path in releases.iterdir()
        if is_version(path.name)
        and path.is_dir()
        and (not path.is_symlink() or path.resolve().is_relative_to(root))
    )


def withdrawn(releases: Path) -> dict[int, Withdrawal]:
    """The withdrawn versions, also those whose folders are gone.

    Raises:
      UserError: withdrawn.json is not what `serving.withdrawal` writes.
    """
    path = Path(releases) / WITHDRAWN
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"{path} must be readable JSON. Received: {error}.") from None
    try:
        entries = [
            (name, Withdrawal(str(entry["reason"]), str(entry["time"])))
            for name, entry in content.items()
        ]
    except (AttributeError, TypeError, KeyError):
        raise UserError(
            f"{path} must hold a reason and a time for each version. Received: {content!r}."
        ) from None
    for name, _ in entries:
        if not is_version(name):
            raise UserError(f"{path} must name versions. Received: {name!r}.")
    return {int(name): entry for name, entry in entries}


def served(releases: Path) -> list[int]:
    """The versions that may answer, ascending; the last one does."""
    gone = withdrawn(releases)
    return [version for version in versions(releases) if version not in gone]


def link_models(releases: Path) -> None:
    """Makes `query_model/` link to the query model of every version that may answer, and no other.

    TF Serving, told to keep the latest two of what it finds there, then keeps what is served and
    what was served before.
    """
    with locked(releases):
        replace_links(releases, served(releases))


def replace_links(releases: Path, linked: Iterable[int]) -> None:
    """Makes `query_model/` link to `linked`; the caller holds the lock of `releases`.

    What is there and no link was not made here, and stays.
    """
    folder = Path(releases) / MODELS
    folder.mkdir(exist_ok=True)
    wanted = {str(version): f"../{version}/{MODELS}" for version in linked}
    for name, target in wanted.items():
        path = folder / name
        ours = path.is_symlink() or not path.exists()
        if not ours or (path.is_symlink() and os.readlink(path) == target):
            continue
        temporary = folder / f".{name}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(path)
    # After the new ones, so that a server that looks in between finds something.
    for path in folder.iterdir():
        if path.is_symlink() and path.name not in wanted:
            path.unlink()

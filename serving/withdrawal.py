"""Takes versions out of service, and back into it; their folders stay.

A server that follows the folder goes to the newest version that is not withdrawn at its next look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from pebr_tf.errors import UserError
from pebr_tf.files import replacing_file
from serving.staging import locked
from serving.versions import (
    WITHDRAWN,
    Clock,
    Withdrawal,
    replace_links,
    served,
    utc_now,
    versions,
    withdrawn,
)


def withdraw(releases: Path, version: int, reason: str = "", now: Clock = utc_now) -> None:
    """Takes one version out of service.

    Raises:
      UserError: No such version, one that is withdrawn already, or the last that is left to serve.
    """
    releases = _folder(releases)
    with locked(releases):
        _require_version(releases, version)
        earlier = withdrawn(releases)
        if version in earlier:
            raise UserError(
                f"version must be one that is not withdrawn. Received: {version}, withdrawn at "
                f"{earlier[version].time}."
            )
        _withdraw(releases, [version], reason, now)


def roll_back(
    releases: Path, to: int | None = None, reason: str = "", now: Clock = utc_now
) -> list[int]:
    """Withdraws the newest version that is served, or all above `to`.

    Returns:
      The versions that it took out of service, ascending.

    Raises:
      UserError: `to` is not served, or nothing would be left to serve.
    """
    releases = _folder(releases)
    with locked(releases):
        candidates = served(releases)
        if to is None:
            above = candidates[-1:]
        else:
            _require_version(releases, to)
            if to not in candidates:
                raise UserError(f"--to must name a version that is not withdrawn. Received: {to}.")
            above = [version for version in candidates if version > to]
        if above or to is None:
            _withdraw(releases, above, reason, now)
    return above


def restore(releases: Path, version: int) -> None:
    """Takes a withdrawn version back into service.

    Raises:
      UserError: It is not withdrawn, or its folder is gone.
    """
    releases = _folder(releases)
    with locked(releases):
        earlier = withdrawn(releases)
        if version not in earlier:
            raise UserError(f"version must be one that is withdrawn. Received: {version}.")
        _require_version(releases, version)
        del earlier[version]
        _write(releases, earlier)
        replace_links(releases, served(releases))


def _withdraw(releases: Path, chosen: Iterable[int], reason: str, now: Clock) -> None:
    """Withdraws versions that are served; the caller holds the lock."""
    before = served(releases)
    left = [version for version in before if version not in chosen]
    if not left:
        raise UserError(
            f"{releases} must keep a version to serve. "
            f"Received: {before[-1] if before else 'none'}, and no other that is not withdrawn."
        )
    printable = "".join(each if each.isprintable() else " " for each in reason)
    entry = Withdrawal(" ".join(printable.split()), now().isoformat(timespec="seconds"))
    _write(releases, {**withdrawn(releases), **dict.fromkeys(chosen, entry)})
    # What answered until now stays in reach of TF Serving, for servers that have yet to look.
    replace_links(releases, [*left, before[-1]])


def _write(releases: Path, entries: dict[int, Withdrawal]) -> None:
    content = {str(version): asdict(entries[version]) for version in sorted(entries)}
    with replacing_file(releases / WITHDRAWN) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _folder(releases: Path) -> Path:
    releases = Path(releases)
    if not versions(releases):
        raise UserError(f"{releases} must be a folder of releases.")
    return releases


def _require_version(releases: Path, version: int) -> None:
    known = versions(releases)
    if version not in known:
        raise UserError(
            f"version must be one of those in {releases}, the newest being {known[-1]}. "
            f"Received: {version}."
        )

"""The versions in a folder of releases, local or in a bucket: which exist, which may be served.

<releases>/<version>/                  a release; in a bucket, only if it has a manifest
<releases>/withdrawn.json              versions that may not be served or fetched, and why
<releases>/query_model/<version>       link to ../<version>/query_model: TF Serving's base path

Links are local only. A withdrawn version keeps its folder. A server that follows the releases
changes to the newest version that is not withdrawn when it looks next.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from pebr_tf import storage
from pebr_tf.errors import UserError
from pebr_tf.files import is_remote, locked

WITHDRAWN = "withdrawn.json"
MANIFEST = "manifest.json"
QUERY_MODEL = "query_model"
# The APIs and TF Serving hold versions in 64 bits.
LARGEST = 2**63 - 1


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class Withdrawal:
    """Why and when a version was withdrawn.

    Attributes:
      reason: One line, or empty.
      time: ISO 8601 in UTC.
    """

    reason: str
    time: str


def is_version(name: str) -> bool:
    """Whether a folder of this name can be a release: a whole number, written plainly."""
    return name.isdecimal() and str(int(name)) == name and int(name) <= LARGEST


def versions(releases: str | Path) -> list[int]:
    """The versions in a folder of releases, ascending; none if there is no such folder.

    In a bucket, versions whose push has not ended count, too. A local link that leads out of the
    folder is not a version.
    """
    if is_remote(releases):
        return sorted(int(name) for name in storage.names(releases) if is_version(name))
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


def withdrawn(releases: str | Path) -> dict[int, Withdrawal]:
    """The withdrawn versions, including those whose folders no longer exist."""
    path = f"{releases}/{WITHDRAWN}"
    try:
        content = json.loads(storage.read_bytes(path))
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


def newest_version(releases: str | Path) -> int:
    """The newest version, withdrawn or not; -1 if there is none."""
    return max([*versions(releases), *withdrawn(releases)], default=-1)


def served(releases: str | Path) -> list[int]:
    """The versions that are not withdrawn, ascending; servers use the last one."""
    gone = withdrawn(releases)
    return [version for version in versions(releases) if version not in gone]


def newest_served(releases: str | Path, without: Iterable[int] = ()) -> int | None:
    """The newest whole version that is neither withdrawn nor in `without`, or None."""
    for version in reversed(served(releases)):
        whole = not is_remote(releases) or storage.exists(f"{releases}/{version}/{MANIFEST}")
        if whole and version not in without:
            return version
    return None


def roll_back(releases: str | Path, to: int | None = None, reason: str = "") -> list[int]:
    """Withdraws the newest served version, or all served versions above `to`.

    Returns:
      The versions that were withdrawn, ascending.
    """
    with _changing(releases):
        if to is None:
            newest = newest_served(releases)
            above = [] if newest is None else [newest]
        else:
            _require_version(releases, to)
            candidates = served(releases)
            if to not in candidates:
                raise UserError(f"--to must name a version that is not withdrawn. Received: {to}.")
            above = [version for version in candidates if version > to]
        if above or to is None:
            _withdraw(releases, above, reason)
    return above


def restore(releases: str | Path, version: int) -> None:
    with _changing(releases):
        earlier = withdrawn(releases)
        if version not in earlier:
            raise UserError(f"version must be one that is withdrawn. Received: {version}.")
        _require_version(releases, version)
        del earlier[version]
        _write(releases, earlier)
        _link(releases, served(releases))


def link_models(releases: Path) -> None:
    """Makes `query_model/` link to the query model of every served version, and no other.

    TF Serving, configured to keep the latest two of them, then keeps what is served now and what
    was served before.
    """
    with locked(releases):
        _link(releases, served(releases))


def _withdraw(releases: str | Path, chosen: list[int], reason: str) -> None:
    before = newest_served(releases)
    if newest_served(releases, without=chosen) is None:
        raise UserError(
            f"{releases} must keep a version to serve. "
            f"Received: {'none' if before is None else before}, and no other that is not withdrawn."
        )
    printable = "".join(each if each.isprintable() else " " for each in reason)
    entry = Withdrawal(" ".join(printable.split()), utc_now().isoformat(timespec="seconds"))
    _write(releases, {**withdrawn(releases), **dict.fromkeys(chosen, entry)})
    # Servers that have not looked yet still need the model that was served until now.
    _link(releases, [*served(releases), *([] if before is None else [before])])


def _write(releases: str | Path, entries: dict[int, Withdrawal]) -> None:
    content = {str(version): asdict(entries[version]) for version in sorted(entries)}
    storage.write_bytes(f"{releases}/{WITHDRAWN}", (json.dumps(content, indent=2) + "\n").encode())


def _link(releases: str | Path, linked: Iterable[int]) -> None:
    if is_remote(releases):
        return
    folder = Path(releases) / QUERY_MODEL
    folder.mkdir(exist_ok=True)
    wanted = {str(version): f"../{version}/{QUERY_MODEL}" for version in linked}
    for name, target in wanted.items():
        path = folder / name
        if path.is_symlink():
            if os.readlink(path) == target:
                continue
        elif path.exists():
            continue
        temporary = folder / f".{name}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(path)
    # After the new links, so that a server that looks in between finds something.
    for path in folder.iterdir():
        if path.is_symlink() and path.name not in wanted:
            path.unlink()


@contextlib.contextmanager
def _changing(releases: str | Path) -> Iterator[None]:
    if not versions(releases):
        raise UserError(f"{releases} must be a folder of releases.")
    # A bucket has no lock: of two rollbacks in the same second, one may be lost.
    with contextlib.nullcontext() if is_remote(releases) else locked(Path(releases)):
        yield


def _require_version(releases: str | Path, version: int) -> None:
    known = versions(releases)
    if version not in known:
        raise UserError(
            f"version must be one of those in {releases}, the newest being {known[-1]}. "
            f"Received: {version}."
        )

"""Prints what the locked images install: packages, and their bytes without bytecode.

The packages are read where they are installed already, so nothing is downloaded:

    .venv-modern/bin/python requirements/sizes.py     # after make test-modern: the service
    .venv/bin/python requirements/sizes.py            # set modern: both
"""

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

LOCKS = ("service", "pipeline")


def locked(lock: str) -> list[Requirement]:
    """The packages of requirements/LOCK.txt for this Python."""
    text = Path(__file__).with_name(f"{lock}.txt").read_text(encoding="utf-8")
    lines = map(Requirement, re.findall(r"^([a-z0-9].*==.*?) \\$", text, re.MULTILINE))
    return [line for line in lines if line.marker is None or line.marker.evaluate()]


def installed_bytes(package: Requirement) -> int:
    """The sum of the files that the package's wheel installed."""
    found = distribution(package.name)
    if not package.specifier.contains(found.version):
        raise PackageNotFoundError(package.name)
    paths = (file.locate() for file in found.files or ())
    return sum(path.stat().st_size for path in map(Path, paths) if path.suffix != ".pyc")


if __name__ == "__main__":
    for lock in LOCKS:
        try:
            sizes = [installed_bytes(package) for package in locked(lock)]
            print(f"{lock:<9} {len(sizes):>4} packages {sum(sizes) / 1e9:>6.2f} GB")
        except PackageNotFoundError as error:
            print(f"{lock:<9} is not installed here: {error.name} is missing or another version")

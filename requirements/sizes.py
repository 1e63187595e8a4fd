"""Prints what each locked image installs: packages, and their bytes without bytecode.

`make setup` has installed all of them in .venv, at the same versions, so nothing is downloaded:

    .venv/bin/python requirements/sizes.py
"""

import re
from importlib.metadata import distribution
from pathlib import Path

LOCKS = ("service", "pipeline")


def locked(lock: str) -> list[str]:
    """The names of the packages of requirements/LOCK.txt."""
    text = Path(__file__).with_name(f"{lock}.txt").read_text(encoding="utf-8")
    return re.findall(r"^([a-z0-9][\w.-]*)==", text, re.MULTILINE)


def installed_bytes(package: str) -> int:
    """The sum of the files that the package's wheel installed."""
    paths = (file.locate() for file in distribution(package).files or ())
    return sum(path.stat().st_size for path in map(Path, paths) if path.suffix != ".pyc")


if __name__ == "__main__":
    for lock in LOCKS:
        sizes = [installed_bytes(package) for package in locked(lock)]
        print(f"{lock:<9} {len(sizes):>4} packages {sum(sizes) / 1e9:>6.2f} GB")

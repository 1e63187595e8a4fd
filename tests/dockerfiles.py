"""Reading and linting Dockerfiles, for the tests of images."""

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch

import pytest


def parse(text):
    """[(name, value)] in order, continued lines joined, comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


class Dockerfile:
    """The instructions of a file; what is ignored may stand beside it in `<name>.dockerignore`."""

    def __init__(self, path):
        self.path = path
        self.instructions = parse(path.read_text())

    def values(self, name):
        return [value for each, value in self.instructions if each == name]

    def stages(self):
        """Of each stage, in order, the instructions after its FROM."""
        starts = [i for i, (name, _) in enumerate(self.instructions) if name == "FROM"]
        ends = [*starts[1:], len(self.instructions)]
        return [self.instructions[start + 1 : end] for start, end in zip(starts, ends, strict=True)]

    def images(self):
        found = [re.fullmatch(r"(\S+)(?: AS (\S+))?", value) for value in self.values("FROM")]
        return [match.groups() for match in found]

    def stages_copied_from(self):
        return {source for source, _, _ in map(_copy, self.values("COPY")) if source}

    def copies(self):
        """[(source, destination)] of what comes from the folder that is built."""
        parsed = map(_copy, self.values("COPY"))
        return [(each, to) for source, paths, to in parsed if source is None for each in paths]

    def ignores(self, source):
        """Whether what is beside the Dockerfile keeps a source from being sent."""
        beside = self.path.with_name(f"{self.path.name}.dockerignore")
        if not beside.exists():
            return False
        kept = [line[1:] for line in beside.read_text().splitlines() if line.startswith("!")]
        return not any(fnmatch(source.split("/")[0], each) for each in kept)

    def complaints(self):
        """What hadolint says, down to matters of style."""
        program = shutil.which("hadolint", path=f"{sys.prefix}/bin") or shutil.which("hadolint")
        if program is None:
            pytest.skip("hadolint is not installed")
        command = [program, "--failure-threshold", "style", str(self.path)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return (result.stdout + result.stderr) if result.returncode else ""


def _copy(value):
    """The stage of a COPY or None, its sources and its destination."""
    *sources, destination = value.split()
    if sources[0].startswith("--from="):
        return sources[0].removeprefix("--from="), sources[1:], destination
    return None, sources, destination

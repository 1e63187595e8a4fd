"""docs/ab.md shows what the commands in it print."""

import itertools
import re
import runpy
import shlex
import sys
from pathlib import Path

import ab_logs
from pebr_command import run

DOCS = Path(__file__).parents[3] / "docs" / "ab.md"


def commands():
    """Arguments and output of each command, which are indented and begin with a $."""
    lines = DOCS.read_text("utf-8").splitlines()
    found = []
    for place, line in enumerate(lines):
        if match := re.match(r"    \$ pebr (.*)", line):
            block = itertools.takewhile(lambda text: not text or text[0] == " ", lines[place + 1 :])
            output = "\n".join(text.removeprefix("    ") for text in block).strip()
            found.append((shlex.split(match[1]), output.splitlines()))
    return found


def test_the_outputs_are_those_of_the_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["ab_logs.py", "log.parquet"])
    runpy.run_path(ab_logs.__file__, run_name="__main__")
    assert len(commands()) == 2
    for arguments, output in commands():
        assert run(*arguments) == 0
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == output

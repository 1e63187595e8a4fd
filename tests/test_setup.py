"""The set-up script: done once, quick after that, clear when it cannot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ["sh", "cat", "cksum", "dirname", "rm", "ls", "env", "command"]


def run_in_a_bare_world(tmp_path, **programs):
    """Runs a copy of the script where PATH holds a few tools and `programs`, and HOME is empty."""
    project, tools, home = tmp_path / "project", tmp_path / "bin", tmp_path / "home"
    for directory in (tools, home):
        directory.mkdir()
    shutil.copytree(ROOT / "requirements", project / "requirements")
    shutil.copy(ROOT / "setup.py", project)
    for name in TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    for name, text in programs.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    return subprocess.run(
        [str(project / "requirements" / "setup.sh")],
        capture_output=True,
        text=True,
        env={"PATH": str(tools), "HOME": str(home)},
    )


def test_a_second_call_finds_everything_done():
    if not (ROOT / ".venv" / ".ready").exists():
        pytest.fail("these tests must be run through make, which sets .venv up")
    result = subprocess.run(
        [str(ROOT / "requirements" / "setup.sh")], capture_output=True, text=True, env=os.environ
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("python", ["python3", "python3.10"])
def test_without_python_310_it_says_so(tmp_path, python):
    """Also where another interpreter has its name: it answers the version question with no."""
    result = run_in_a_bare_world(tmp_path, uv='[ "$1" = --version ]', **{python: "exit 1"})
    assert result.returncode == 2
    assert result.stderr == (
        "setup: Python 3.10 is required and was not found on PATH, in pyenv or with uv; get it "
        "with 'pyenv install 3.10', 'uv python install 3.10' or your system's package manager, "
        "then run make again.\n"
    )
    assert not (tmp_path / "project" / ".venv").exists()


def test_an_interrupted_set_up_begins_again(tmp_path):
    """When uv fails half-way, the next call does not believe that .venv is ready."""
    result = run_in_a_bare_world(
        tmp_path,
        uv='[ "$1" = --version ] || { echo "uv $1 $2" >&2; exit 3; }',
        **{"python3.10": 'case "$*" in *executable*) echo /nowhere/python3.10;; esac'},
    )
    assert result.returncode == 3
    assert "uv venv --quiet" in result.stderr
    assert not (tmp_path / "project" / ".venv" / ".ready").exists()

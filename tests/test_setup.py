"""The set-up script: done once, quick after that, clear when it cannot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ["sh", "cat", "cksum", "dirname", "rm", "ls", "env", "command"]


def run_in_a_bare_world(tmp_path, *arguments, pebr_set=None, **programs):
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
        [str(project / "requirements" / "setup.sh"), *arguments],
        capture_output=True,
        text=True,
        env={"PATH": str(tools), "HOME": str(home), **({"PEBR_SET": pebr_set} if pebr_set else {})},
    )


def interpreter(version):
    """A program that answers the questions of the script as that Python would."""
    return (
        f'case "$*" in *--version) echo Python {version}.0;; *executable*) echo python{version};; '
        f"*\\'{version}\\'*) ;; *) exit 1;; esac"
    )


# Knows its version and makes nothing.
UV = '[ "$1" = --version ] || { echo "uv $1 $2" >&2; exit 3; }'


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
        uv=UV,
        **{"python3.10": 'case "$*" in *executable*) echo /nowhere/python3.10;; esac'},
    )
    assert result.returncode == 3
    assert "uv venv --quiet" in result.stderr
    assert not (tmp_path / "project" / ".venv" / ".ready").exists()


@pytest.mark.parametrize(
    ("glibc", "newest", "asked", "line"),
    [
        ("2.41", "3.13", None, "modern, Python 3.13.0: this machine has glibc 2.41"),
        ("2.39", "3.11", None, "modern, Python 3.11.0: this machine has glibc 2.39"),
        (
            "2.38",
            "3.13",
            None,
            "native, Python 3.10.0: modern needs glibc 2.39, this machine has glibc 2.38",
        ),
        (
            "2.41",
            "3.14",
            None,
            "native, Python 3.10.0: modern needs Python 3.11 to 3.13, which was not found",
        ),
        ("2.41", "3.13", "native", "native, Python 3.10.0: PEBR_SET asks for it"),
        ("2.39", "3.12", "modern", "modern, Python 3.12.0: PEBR_SET asks for it"),
    ],
)
def test_the_machine_or_the_user_chooses_the_set(tmp_path, glibc, newest, asked, line):
    pythons = {f"python{version}": interpreter(version) for version in ("3.10", newest)}
    result = run_in_a_bare_world(
        tmp_path, pebr_set=asked, uv=UV, getconf=f"echo glibc {glibc}", **pythons
    )
    assert result.stderr.splitlines()[:2] == [f"setup: set {line}", "uv venv --quiet"]
    assert result.returncode == 3


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("modern", "PEBR_SET=modern requires glibc 2.39 or later. Received: glibc 2.36."),
        ("newest", "PEBR_SET must be native or modern. Received: newest."),
    ],
)
def test_a_set_that_this_machine_has_not_is_rejected(tmp_path, asked, sentence):
    result = run_in_a_bare_world(tmp_path, pebr_set=asked, uv=UV, getconf="echo glibc 2.36")
    assert (result.returncode, result.stderr) == (2, f"setup: {sentence}\n")


def test_without_python_313_the_tests_on_it_are_skipped(tmp_path):
    result = run_in_a_bare_world(tmp_path, "service", uv=UV, **{"python3.12": interpreter("3.12")})
    assert (result.returncode, result.stderr) == (
        0,
        "setup: skipped: Python 3.13 was not found on PATH, in pyenv or with uv.\n",
    )
    assert not (tmp_path / "project" / ".venv-modern").exists()

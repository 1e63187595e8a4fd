"""One run of the tiny world for all tests of this folder, and copies of it to work on."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pebr_process import Finished
from tiny_world import write_world

PEBR = str(Path(sys.executable).parent / "pebr")
RUN = ("run", "--config", "pebr.yaml")
# The modules whose digests the components of this project are cached by.
SOURCES = {
    "ClickLogExampleGen": "components.click_log_example_gen.executor",
    "ExampleValidator": "components.example_validator.executor",
    "Transform": "pipeline.preprocessing",
    "Trainer": "pipeline.trainer",
    "IndexBuilder": "components.index_builder.executor",
    "CutoffCalibrator": "components.cutoff_calibrator.executor",
    "RetrievalEvaluator": "components.retrieval_evaluator.executor",
    "Pusher": "components.pusher.executor",
}


@dataclass(frozen=True)
class World:
    """A folder with data, config, and what runs have left there."""

    folder: Path

    @property
    def releases(self) -> list[Path]:
        """The folders of the versions in `releases`."""
        return sorted((self.folder / "releases").glob("[0-9]*"))

    def edit_config(self, old: str, new: str) -> None:
        """Changes the text of pebr.yaml."""
        path = self.folder / "pebr.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


@dataclass(frozen=True)
class BaseRun(World):
    """The first run, which all others start from."""

    finished: Finished


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> BaseRun:
    """`pebr run` on the tiny world, by the command itself; to be read only."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "tiny_world"
    with (shared / "tiny_world.lock").open("w") as lock:
        # Workers of pytest-xdist share the run.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "code").exists():
            write_world(folder)
            done = subprocess.run(
                [PEBR, *RUN],
                cwd=folder,
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            (folder / "out").write_text(done.stdout, encoding="utf-8")
            (folder / "err").write_text(done.stderr, encoding="utf-8")
            (folder / "code").write_text(str(done.returncode))
    out, err, code = ((folder / name).read_text("utf-8") for name in ("out", "err", "code"))
    return BaseRun(folder, Finished(int(code), out, err))


@pytest.fixture
def world(base: BaseRun, tmp_path: Path) -> World:
    """A copy of the first run; its metadata names paths below the folder that a run works in."""
    assert base.finished.code == 0, base.finished.err
    shutil.copytree(base.folder, tmp_path / "world")
    return World(tmp_path / "world")


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], World]:
    """Makes a world in which nothing has run."""

    def make() -> World:
        write_world(tmp_path / "fresh")
        return World(tmp_path / "fresh")

    return make

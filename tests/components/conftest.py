"""Fixtures of all component tests."""

import shutil

import pytest


@pytest.fixture
def snapshot_at(monkeypatch):
    """Simulates kills: copies a folder when a function is called, and lets the run go on.

    The copy is what a process that was killed at that moment would leave on disk.
    """

    def install(owner, name, folder, copy, call=1):
        real, calls = getattr(owner, name), []

        def copies(*arguments, **keywords):
            calls.append(name)
            if len(calls) == call:
                shutil.copytree(folder, copy)
            return real(*arguments, **keywords)

        monkeypatch.setattr(owner, name, copies)

    return install


@pytest.fixture(scope="session")
def world():
    """The small world that calibrator and evaluator are tested on."""
    from calibrated_cases import CalibratedWorld

    return CalibratedWorld()


@pytest.fixture(scope="session")
def calibrator_inputs(world, tmp_path_factory):
    """The calibrator's inputs on disk; do not write to them."""
    from calibrated_cases import write_inputs

    return write_inputs(tmp_path_factory.mktemp("inputs"), world)

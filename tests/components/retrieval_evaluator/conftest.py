"""The evaluator is tested on what the calibrator's cases write."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cutoff_calibrator"))


@pytest.fixture(autouse=True, scope="session")
def _quick():
    """Few calls to time."""
    from components.retrieval_evaluator import searching

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "CALLS", 3)
        yield


@pytest.fixture(scope="session")
def world():
    from calibrated_cases import World

    return World()


@pytest.fixture(scope="session")
def inputs(world, _quick, tmp_path_factory):
    from calibrated_cases import artifact, calibrate, write_inputs

    from components.artifacts import CutoffModel

    folder = tmp_path_factory.mktemp("inputs")
    given = write_inputs(folder, world)
    return {**given, "cutoff": [artifact(CutoffModel, calibrate(folder, given))]}

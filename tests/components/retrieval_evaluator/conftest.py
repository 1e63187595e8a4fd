"""The evaluator is tested on what the calibrator's cases write."""

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cutoff_calibrator"))


@contextmanager
def few_steps():
    """Few calls to time and few steps of a fit, until the context ends."""
    from components.retrieval_evaluator import searching
    from pebr_tf.cutoff import fitting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "CALLS", 3)
        patch.setattr(fitting, "MOST_STEPS", 20)
        yield


@pytest.fixture(autouse=True, scope="module")
def _few_steps():
    with few_steps():
        yield


@pytest.fixture(scope="session")
def world():
    from calibrated_cases import World

    return World()


@pytest.fixture(scope="session")
def inputs(world, tmp_path_factory):
    from calibrated_cases import artifact, calibrate, write_inputs

    from components.artifacts import CutoffModel

    folder = tmp_path_factory.mktemp("inputs")
    given = write_inputs(folder, world)
    with few_steps():
        return {**given, "cutoff": [artifact(CutoffModel, calibrate(folder, given))]}

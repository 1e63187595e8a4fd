"""The evaluator is tested on what the calibrator's cases write."""

from contextlib import contextmanager

import pytest


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
def inputs(calibrator_inputs, tmp_path_factory):
    from artifact_files import artifact
    from calibrated_cases import calibrate

    from components.artifacts import CutoffModel

    with few_steps():
        folder = calibrate(tmp_path_factory.mktemp("calibrated"), calibrator_inputs)
    return {**calibrator_inputs, "cutoff": [artifact(CutoffModel, folder)]}

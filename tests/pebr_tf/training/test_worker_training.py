"""Two real workers: the loss curve of one, one set of checkpoints, and a way on after a kill."""

import re
import signal
from pathlib import Path

import numpy as np
import pytest
from training_cases import write_pairs
from worker_process import INTERVAL, STEPS, train
from worker_processes import workers

SCRIPT = Path(__file__).with_name("worker_process.py")
# The same sums of float32 in another order: over thirty steps of Adam losses agree to some 1e-7.
# With half of the negatives they differ by a fifth; if Adam moves absent rows, by a hundredth.
TOLERANCE = 1e-5

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    write_pairs(tmp_path, 400, files=3)
    return tmp_path


def alone(path, *steps):
    """A training by one worker, killed where the first numbers of steps say."""
    path.mkdir()
    write_pairs(path, 400, files=3)
    return [train(path, "one_device", number) for number in steps][-1]


def assert_same_curve(ours, expected):
    assert [step for step, _ in ours["losses"]] == [step for step, _ in expected["losses"]]
    np.testing.assert_allclose(
        [loss for _, loss in ours["losses"]],
        [loss for _, loss in expected["losses"]],
        rtol=TOLERANCE,
    )
    assert ours["loss"] == pytest.approx(expected["loss"], rel=TOLERANCE)


def test_two_workers_have_the_loss_curve_of_one(folder):
    with workers(SCRIPT, folder, folder, -1, -1) as started:
        answers = [worker.answer() for worker in started]
    assert [answer["replicas"] for answer in answers] == [2, 2]
    assert answers[0]["weights"] == answers[1]["weights"]
    assert answers[0]["losses"] == answers[1]["losses"]
    assert_same_curve(answers[0], alone(folder / "alone", STEPS))
    # The chief's checkpoints and log, once, and nothing left of the other's.
    found = sorted(path.name for path in (folder / "checkpoints" / "latest").glob("*.index"))
    assert found == [f"ckpt-{STEPS - INTERVAL}.index", f"ckpt-{STEPS}.index"]
    assert len(list((folder / "logs").iterdir())) == 1
    assert [list(worker.temporary.iterdir()) for worker in started] == [[], []]


def assert_says_that_one_was_lost(worker, steps):
    code, errors = worker.ended()
    assert code == 1
    assert re.search(
        r"^pebr_tf\.errors\.UserError: every worker must stay until training ends: start all of "
        r"them again, and it goes on at its last checkpoint\. Received: a worker lost after step "
        rf"({'|'.join(map(str, steps))}) \(.+\)\.$",
        errors,
        re.MULTILINE,
    ), errors


def test_after_a_kill_both_workers_go_on_from_the_checkpoint(folder):
    with workers(SCRIPT, folder, folder, 1, INTERVAL + 5) as started:
        assert started[1].ended()[0] == -signal.SIGKILL
        # The last step of the killed one may have ended for both, or for it alone.
        assert_says_that_one_was_lost(started[0], (INTERVAL + 4, INTERVAL + 5))
    with workers(SCRIPT, folder, folder, -1, -1) as started:
        answers = [worker.answer() for worker in started]
    assert answers[0]["weights"] == answers[1]["weights"]
    assert [answer["resumed_from"] for answer in answers] == [INTERVAL, INTERVAL]
    assert [answer["iterations"] for answer in answers] == [STEPS, STEPS]
    assert_same_curve(answers[0], alone(folder / "alone", INTERVAL, STEPS))


def test_the_loss_of_the_chief_is_told_too(folder):
    with workers(SCRIPT, folder, folder, 0, 2) as started:
        assert started[0].ended()[0] == -signal.SIGKILL
        assert_says_that_one_was_lost(started[1], (1, 2))

"""Two real workers: one set of checkpoints, a way on after a kill, and the loss curve of one."""

import re
import signal

import numpy as np
import pytest
from training_cases import write_pairs
from worker_process import INTERVAL, STEPS, train, work
from worker_processes import workers

# The same sums of float32 in another order: over a dozen steps of Adam losses agree to some 1e-7.
# With half of the negatives they differ by a fifth; if Adam moves absent rows, by 2%.
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


def assert_says_that_one_was_lost(worker, steps):
    ended = worker.finish()
    assert ended.code == 1
    assert re.search(
        r"^pebr_tf\.errors\.UserError: every worker must stay until training ends: restart all "
        r"of them, and training continues at its last checkpoint\. Received: a worker lost "
        rf"after step ({'|'.join(map(str, steps))}) \(.+\)\.$",
        ended.err,
        re.MULTILINE,
    ), ended.err


def test_after_a_kill_both_workers_go_on_with_the_loss_curve_of_one(folder):
    with workers(work, folder / "first", folder, 1, INTERVAL + 2) as started:
        assert started[1].finish().code == -signal.SIGKILL
        # The last step of the killed one may have ended for both, or for it alone.
        assert_says_that_one_was_lost(started[0], (INTERVAL + 1, INTERVAL + 2))
    with workers(work, folder / "second", folder, -1, -1) as started:
        answers = [worker.finish().answer() for worker in started]
    for name in ("weights", "losses", "recall"):
        assert answers[0][name] == answers[1][name]
    for answer in answers:
        assert (answer["replicas"], answer["iterations"]) == (2, STEPS)
        assert answer["resumed_from"] == INTERVAL
    steps, losses = zip(*answers[0]["losses"], strict=True)
    expected = alone(folder / "alone", INTERVAL, STEPS)
    expected_steps, expected_losses = zip(*expected["losses"], strict=True)
    assert steps == expected_steps
    np.testing.assert_allclose(losses, expected_losses, rtol=TOLERANCE)
    assert answers[0]["loss"] == pytest.approx(expected["loss"], rel=TOLERANCE)
    assert answers[0]["recall"] == expected["recall"] > 0
    # The chief's checkpoints and a log of each start, and nothing left of the other's.
    found = {path.name for path in (folder / "checkpoints" / "latest").glob("*.index")}
    assert found == {f"ckpt-{STEPS - INTERVAL}.index", f"ckpt-{STEPS}.index"}
    assert len(list((folder / "logs").iterdir())) == 2
    assert [list(worker.temporary.iterdir()) for worker in started] == [[], []]


def test_the_loss_of_the_chief_is_told_too(folder):
    with workers(work, folder, folder, 0, 2) as started:
        assert started[0].finish().code == -signal.SIGKILL
        assert_says_that_one_was_lost(started[1], (1, 2))

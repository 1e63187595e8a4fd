"""The soak of `python -m benchmarks soak` for 20 seconds, on a tiny release."""

import json

import pytest

from benchmarks.soak import Soak, soak_release
from pebr_tf.release.release import find_release


@pytest.mark.slow
def test_no_answer_is_wrong_and_no_call_lost_but_those_of_killed_workers(releases):
    texts = ["red phone", "phone", "blue laptop bag", "cable", "white charger", "headset 3"]
    soak, code = soak_release(find_release(releases), texts, 20, swap_every=6, kill_every=9)
    assert soak.wrong == []
    assert soak.lost_otherwise == 0
    assert len(soak.kills) == 2
    # Whether a swap ends in these seconds depends on the machine; test_supervisor.py waits for it.
    assert soak.answers
    assert soak.rejected > 0
    assert code == 0


def answer(*scores):
    items = [{"item_id": name, "score": score} for name, score in scores]
    return json.dumps({"release": 1, "results": [{"items": items}]}).encode()


def test_the_soak_sees_a_wrong_answer_and_a_lost_call():
    soak = Soak(kills=[100.0])
    soak.check("a", answer(("x", 0.9), ("y", 0.5), ("z", 0.499999)))
    soak.check("a", answer(("x", 0.9), ("z", 0.5), ("w", 0.499999)))
    assert soak.wrong == []
    soak.check("a", answer(("y", 0.9), ("z", 0.5), ("w", 0.4)))
    assert soak.wrong == ["a: ['y', 'z', 'w'] instead of ['x', 'y', 'z']"]
    for now in (99.9, 100.5, 101.5):
        soak.ended(now)
    assert (soak.lost, soak.lost_otherwise) == (1, 2)

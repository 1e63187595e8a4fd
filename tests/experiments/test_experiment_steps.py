"""Steps: each is computed once, in order, and never again once it is kept."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.step import Step, Store, run_steps


class Workshop:
    """Makes steps that say when they are computed."""

    def __init__(self):
        self.computed = []

    def step(self, name, *needs, result=None):
        def compute(*results):
            self.computed.append((name, *(each["name"] for each in results)))
            return result or {"name": name}

        return Step(name, {"name": name}, ("pebr_tf.files",), compute, needs)

    def names(self):
        return [name for name, *_ in self.computed]


class Told:
    """A progress that remembers."""

    def __init__(self):
        self.lines = []

    def plan(self, steps, cached):
        self.lines.append(("plan", [step.title for step in steps], cached))

    def begin(self, step):
        self.lines.append(("begin", step.title))

    def end(self, step, seconds):
        assert seconds >= 0
        self.lines.append(("end", step.title))


def test_needs_come_first_and_a_shared_one_once(tmp_path):
    workshop, told = Workshop(), Told()
    shared = workshop.step("shared")
    wanted = {
        "x": workshop.step("first", shared),
        "y": workshop.step("second", workshop.step("own", shared), shared),
        "again": workshop.step("first", shared),
    }
    results = run_steps(wanted, Store(tmp_path), told)
    assert workshop.computed == [
        ("shared",),
        ("first", "shared"),
        ("own", "shared"),
        ("second", "own", "shared"),
    ]
    assert {name: each["name"] for name, each in results.items()} == {
        "x": "first",
        "y": "second",
        "again": "first",
    }
    names = ["shared", "first", "own", "second"]
    lines = [(word, name) for name in names for word in ("begin", "end")]
    assert told.lines == [("plan", names, 0), *lines]


def test_what_is_kept_is_not_computed_nor_what_only_it_needs(tmp_path):
    workshop, told = Workshop(), Told()
    shared = workshop.step("shared")
    first, second = workshop.step("first", shared), workshop.step("second", shared)
    run_steps({"a": first}, Store(tmp_path))
    # As if the large towers had been deleted, and their figures kept.
    store = Store(tmp_path)
    (tmp_path / f"{store.name(shared)}.npz").unlink()
    workshop.computed.clear()
    run_steps({"a": first}, store, told)
    assert workshop.computed == []
    assert told.lines == [("plan", [], 1)]
    run_steps({"a": first, "b": second}, Store(tmp_path))
    assert workshop.names() == ["shared", "second"]


def test_the_first_run_gives_what_a_later_one_gives(tmp_path):
    """A tuple is a list, and a NumPy scalar a number, from the beginning."""
    workshop = Workshop()
    step = workshop.step("a", result={"pair": (1, 2), "scalar": np.float32(0.5)})
    first, later = (run_steps({"a": step}, Store(tmp_path))["a"] for _ in range(2))
    assert first == later == {"pair": [1, 2], "scalar": 0.5}
    assert type(first["pair"]) is list
    assert type(first["scalar"]) is float


def test_a_result_that_vanishes_during_a_run_is_told(tmp_path):
    workshop = Workshop()
    first = workshop.step("first")

    class Thief(Told):
        def begin(self, step):
            if step.title == "second":
                for file in tmp_path.iterdir():
                    file.unlink()

    with pytest.raises(
        ValueError, match=r"^The result of 'first' must stay in the store during a run\.$"
    ):
        run_steps({"a": workshop.step("second", first)}, Store(tmp_path), Thief())

"""Steps are not computed again once they are kept."""

from __future__ import annotations

from experiments.step import Step, Store, run_steps


class Workshop:
    """Makes steps that say when they are computed."""

    def __init__(self):
        self.computed = []

    def step(self, name, *needs):
        def compute(*results):
            self.computed.append(name)
            return {"name": name}

        return Step(name, {"name": name}, ("pebr_tf.files",), compute, needs)


def test_what_is_kept_is_not_computed_nor_what_only_it_needs(tmp_path):
    workshop = Workshop()
    shared = workshop.step("shared")
    first, second = workshop.step("first", shared), workshop.step("second", shared)
    run_steps({"a": first}, Store(tmp_path))
    # As if the large towers had been deleted, and their figures kept.
    store = Store(tmp_path)
    (tmp_path / f"{store.name(shared)}.pickle").unlink()
    workshop.computed.clear()
    run_steps({"a": first}, store)
    assert workshop.computed == []
    run_steps({"a": first, "b": second}, Store(tmp_path))
    assert workshop.computed == ["shared", "second"]

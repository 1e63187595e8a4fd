"""The store: what goes in comes out, damage is no result, names change with what decides one."""

import sys

import numpy as np
import pytest

from experiments.step import Step
from experiments.store import Store

RESULT = {
    "text": "größer",
    "nothing": None,
    "scalar": np.float32(0.5),
    "nested": {"sequence": (1, {"deep": np.arange(6, dtype=np.int8).reshape(2, 3)})},
}


def step_of(key=None, sources=("pebr_tf.files",), needs=(), title="a step"):
    return Step(title, key or {"a": 1}, sources, lambda: {}, needs)


def test_a_result_comes_back_plain(tmp_path):
    Store(tmp_path / "new" / "cache").save(step_of(), RESULT)
    found = Store(tmp_path / "new" / "cache").load(step_of())
    _, deep = found["nested"]["sequence"]
    assert deep["deep"].dtype == np.int8
    assert deep["deep"].tolist() == [[0, 1, 2], [3, 4, 5]]
    deep["deep"] = None
    nested = {"sequence": [1, {"deep": None}]}
    assert found == {"text": "größer", "nothing": None, "scalar": 0.5, "nested": nested}
    assert type(found["scalar"]) is float


def test_a_damaged_file_is_no_result(tmp_path):
    """Cut, or with a flipped bit."""
    store = Store(tmp_path)
    store.save(step_of(), RESULT)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[-20] ^= 1
    for content in (b"", whole[:20], whole[:-1], bytes(flipped)):
        file.write_bytes(content)
        assert store.load(step_of()) is None


def test_only_what_decides_a_result_is_in_its_name(tmp_path):
    name = Store(tmp_path).name
    same = name(step_of({"a": 1, "b": (2, 3)}))
    assert name(step_of({"b": [2, 3], "a": 1}, title="another")) == same
    assert name(step_of({"a": 1, "b": (2, 3)}, ("pebr_tf.files",) * 2)) == same
    need = step_of({"x": 0})
    sources = (("pebr_tf.errors",), ("pebr_tf.files", "pebr_tf.errors"))
    needs = ((need,), (step_of({"x": 1}),), (need, need))
    others = [
        step_of({"a": 1, "b": (2, 4)}),
        *(step_of({"a": 1, "b": (2, 3)}, each) for each in sources),
        *(step_of({"a": 1, "b": (2, 3)}, needs=each) for each in needs),
    ]
    assert len({same, *map(name, others)}) == 1 + len(others)


@pytest.mark.parametrize(
    ("source", "edited", "changes"),
    [
        ("stored_package", "inner/deep.py", True),
        ("stored_package.inner", "module.py", False),
        ("stored_package.module", "module.py", True),
        ("stored_package.module", "other.py", False),
    ],
)
def test_an_edited_source_gives_another_name(source, edited, changes, tmp_path, monkeypatch):
    folder = tmp_path / "stored_package"
    (folder / "inner").mkdir(parents=True)
    for name in ("__init__.py", "module.py", "other.py", "inner/__init__.py", "inner/deep.py"):
        (folder / name).write_text(f"raise ImportError({name!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    store, step = Store(tmp_path), step_of(sources=(source,))
    before = store.name(step)
    (folder / edited).write_text("changed")
    assert (Store(tmp_path).name(step) != before) is changes
    # The code that runs is that of the beginning.
    assert store.name(step) == before
    assert not any(name.startswith("stored_package") for name in sys.modules)

"""The store: what goes in comes out, damage is no result, names change with what decides one."""

from __future__ import annotations

import io
import sys
import zipfile

import numpy as np
import pytest

from experiments.step import Step
from experiments.store import Store

RESULT = {
    "text": "größer",
    "nothing": None,
    "truth": True,
    "number": 0.1,
    "nested": {"list": [1, {"deep": np.arange(6, dtype=np.int8).reshape(2, 3)}]},
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "float32": np.array([np.nan, -np.inf, 1e-38], np.float32),
    "empty": np.zeros((0, 4), np.int64),
    "point": np.array(2.5),
    "texts": np.array(["a", "長い"]),
}


def step_of(key=None, sources=("pebr_tf.files",), needs=(), title="a step"):
    return Step(title, key or {"a": 1}, sources, lambda: {}, needs)


def assert_same(found, expected):
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, value in expected.items():
            assert_same(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected
        assert type(found) is type(expected)


def test_a_result_comes_back_as_it_went_in(tmp_path):
    Store(tmp_path / "new" / "cache").save(step_of(), RESULT)
    assert_same(Store(tmp_path / "new" / "cache").load(step_of()), RESULT)


def test_a_damaged_archive_is_no_result(tmp_path):
    """Cut, with a flipped bit, with other members, or with a pickled object."""
    store = Store(tmp_path)
    store.save(step_of(), RESULT)
    (archive,) = tmp_path.iterdir()
    whole = archive.read_bytes()
    damaged = [whole[: int(share * len(whole))] for share in (0, 0.1, 0.5, 0.999)]
    flipped = bytearray(whole)
    flipped[whole.index(RESULT["fortran"].tobytes("F")) + 6] ^= 1
    pickled = io.BytesIO()
    np.lib.format.write_array(pickled, np.array([print], object), allow_pickle=True)
    one_array = '{"a": {"__array__": 0}}'
    for members in (
        {"step.json": "{}"},
        {"result.json": "{"},
        {"result.json": "[1, 2]"},
        {"result.json": one_array},
        {"result.json": one_array, "0.npy": "no array"},
        {"result.json": one_array, "0.npy": pickled.getvalue()},
    ):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as changed:
            for name, text in members.items():
                changed.writestr(name, text)
        damaged.append(content.getvalue())
    for content in (*damaged, bytes(flipped)):
        archive.write_bytes(content)
        assert store.load(step_of()) is None


def test_only_what_decides_a_result_is_in_its_name(tmp_path):
    name = Store(tmp_path).name
    same = name(step_of({"a": 1, "b": (2, 3)}))
    assert name(step_of({"b": [2, 3], "a": 1}, title="another")) == same
    assert name(step_of({"a": 1, "b": (2, 3)}, ("pebr_tf.files",) * 2)) == same
    need = step_of({"x": 0})
    others = [
        step_of({"a": 1, "b": (2, 4)}),
        step_of({"a": 1, "b": (2, 3)}, ("pebr_tf.errors",)),
        step_of({"a": 1, "b": (2, 3)}, ("pebr_tf.files", "pebr_tf.errors")),
        step_of({"a": 1, "b": (2, 3)}, needs=(need,)),
        step_of({"a": 1, "b": (2, 3)}, needs=(step_of({"x": 1}),)),
        step_of({"a": 1, "b": (2, 3)}, needs=(need, need)),
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

"""The store: what goes in comes out, damage is no result, names change with what decides one."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

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


def test_what_is_not_there_is_none(tmp_path):
    assert Store(tmp_path / "no such folder").load(step_of()) is None
    assert not (tmp_path / "no such folder").exists()


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (
            {"a": {3: 1}},
            ValueError,
            r"^Keys of a result must be texts other than '__array__'\. Received: 3\.$",
        ),
        (
            {"a": [{"__array__": 0}]},
            ValueError,
            r"^Keys of a result must be texts other than '__array__'\. Received: '__array__'\.$",
        ),
        ({"a": np.array([{}, None], object)}, ValueError, "Object arrays cannot be saved"),
        ({"a": {1, 2}}, TypeError, "set is not JSON serializable"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(result, error, message, tmp_path):
    store = Store(tmp_path)
    with pytest.raises(error, match=message):
        store.save(step_of(), {"fine": np.arange(3), **result})
    assert list(tmp_path.iterdir()) == []
    assert store.load(step_of()) is None


def test_a_failed_save_leaves_the_older_result(tmp_path):
    store = Store(tmp_path)
    store.save(step_of(), {"a": 1})
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        store.save(step_of(), {"a": np.array([None], object)})
    assert store.load(step_of()) == {"a": 1}


@pytest.fixture
def archive(tmp_path) -> Path:
    Store(tmp_path).save(step_of(), RESULT)
    (path,) = tmp_path.iterdir()
    return path


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
def test_an_archive_that_was_cut_is_no_result(share, archive, tmp_path):
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(share * len(whole))])
    assert Store(tmp_path).load(step_of()) is None


def test_an_array_with_a_flipped_bit_is_no_result(archive, tmp_path):
    whole = bytearray(archive.read_bytes())
    place = whole.index(RESULT["fortran"].tobytes("F"))
    whole[place + 6] ^= 1
    archive.write_bytes(whole)
    assert Store(tmp_path).load(step_of()) is None


@pytest.mark.parametrize(
    "members",
    [
        {"step.json": "{}"},
        {"result.json": "{"},
        {"result.json": "[1, 2]"},
        {"result.json": '{"a": {"__array__": 0}}'},
        {"result.json": '{"a": {"__array__": 0}}', "0.npy": "no array"},
    ],
    ids=["no result", "no JSON", "no mapping", "no array", "a broken array"],
)
def test_an_archive_with_other_content_is_no_result(members, archive, tmp_path):
    with zipfile.ZipFile(archive, "w") as changed:
        for name, content in members.items():
            changed.writestr(name, content)
    assert Store(tmp_path).load(step_of()) is None


def test_objects_are_not_unpickled(archive, tmp_path):
    with zipfile.ZipFile(archive, "w") as changed:
        changed.writestr("result.json", '{"a": {"__array__": 0}}')
        with changed.open("0.npy", "w") as file:
            np.lib.format.write_array(file, np.array([print], object), allow_pickle=True)
    assert Store(tmp_path).load(step_of()) is None


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


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "stored_package"
    (folder / "inner").mkdir(parents=True)
    for name in ("__init__.py", "module.py", "other.py", "inner/__init__.py", "inner/deep.py"):
        (folder / name).write_text(f"raise ImportError({name!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


@pytest.mark.parametrize(
    ("source", "edited", "changes"),
    [
        ("stored_package", "inner/deep.py", True),
        ("stored_package", "__init__.py", True),
        ("stored_package.inner", "inner/deep.py", True),
        ("stored_package.inner", "module.py", False),
        ("stored_package.module", "module.py", True),
        ("stored_package.module", "other.py", False),
    ],
)
def test_an_edited_source_gives_another_name(source, edited, changes, package, tmp_path):
    store, step = Store(tmp_path), step_of(sources=(source,))
    before = store.name(step)
    file = package / edited
    file.write_text(file.read_text().replace("raise", "RAISE"))
    assert (Store(tmp_path).name(step) != before) is changes
    # The code that runs is that of the beginning.
    assert store.name(step) == before
    assert not any(name.startswith("stored_package") for name in sys.modules)


@pytest.mark.parametrize(
    "source", ["no_such_package", "pebr_tf.no_such", "pebr_tf.files.replacing_file", "sys"]
)
def test_a_source_must_exist(source, tmp_path):
    message = rf"^A source must be a module or a package\. Received: '{source}'\.$"
    for call in (Store(tmp_path).name, Store(tmp_path).load):
        with pytest.raises(ValueError, match=message):
            call(step_of(sources=(source,)))

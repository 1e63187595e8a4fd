"""Updates in a file: saved whole, loaded onto their own base only, and never trusted."""

import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from pebr_tf.retrieval import updates
from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.updates import UpdatableSearcher, load_updates


def refused(message):
    """Expects a ValueError of exactly this text."""
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def assert_same_answers(found, expected):
    """Rows, ids, scores, thresholds and flags are equal to the last bit."""
    for name in ("row_splits", "item_ids", "scores", "thresholds", "truncated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.partial == expected.partial


def changed_searcher(base=None):
    """A searcher of text ids with an item added, one replaced and one removed."""
    base = base or ExactSearcher(np.eye(4), ["a", "b", "c", "d"])
    searcher = UpdatableSearcher(base)
    searcher.upsert(["b", "a new one"], [[1, 2, 3, 4], [1, 1, 0, 0]])
    searcher.remove(["c"])
    return searcher


def test_updates_are_saved_and_loaded(tmp_path):
    path = tmp_path / "deep" / "updates.npz"
    searcher = changed_searcher()
    searcher.save(path)
    assert [file.name for file in path.parent.iterdir()] == ["updates.npz"]
    # The same base, from a source that stores texts in a wider dtype.
    base = ExactSearcher(np.eye(4), np.array(["a", "b", "c", "d"], "U20"))
    for loaded in (load_updates(base, path), load_updates(base, str(path))):
        assert_same_answers(loaded.search(np.eye(4), -1), searcher.search(np.eye(4), -1))
        assert loaded.pending == searcher.pending == 3
        for mine, its in zip(loaded.items(), searcher.items(), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_no_updates_of_an_empty_base_are_saved_and_loaded(tmp_path):
    for ids in (None, np.empty(0, "U3")):
        base = ExactSearcher(np.empty((0, 2)), ids)
        UpdatableSearcher(base).save(tmp_path / "updates.npz")
        assert len(load_updates(base, tmp_path / "updates.npz")) == 0


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "updates.npz"
    changed_searcher().save(path)
    before = path.read_bytes()
    with (
        mock.patch.object(updates.np, "savez", side_effect=OSError("No space left on device")),
        pytest.raises(OSError, match="No space left on device"),
    ):
        changed_searcher().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["updates.npz"]


@pytest.mark.parametrize(
    ("vectors", "ids", "items"),
    [
        (np.eye(4)[:3], ["a", "b", "c"], 3),
        (np.eye(4), ["a", "b", "c", "e"], 4),
        (np.eye(4), ["b", "a", "c", "d"], 4),
        (np.eye(4)[::-1], ["a", "b", "c", "d"], 4),
        (np.eye(4), [0, 1, 2, 3], 4),
    ],
    ids=["fewer items", "other ids", "another order", "other vectors", "other kind of ids"],
)
def test_updates_of_another_base_are_refused(tmp_path, vectors, ids, items):
    path = tmp_path / "updates.npz"
    changed_searcher().save(path)
    with refused(
        f"{path} must hold updates of this base of {items} items. "
        "Received: those of another base, of 4 items."
    ):
        load_updates(ExactSearcher(vectors, ids), path)


def damaged_text(path):
    return f"{path} must be a whole file of updates. Received: a damaged or another file."


def test_a_damaged_file_is_refused_or_harmless(tmp_path):
    path = tmp_path / "updates.npz"
    searcher = changed_searcher()
    searcher.save(path)
    whole = path.read_bytes()
    expected = searcher.search(np.eye(4), -1)
    base, survived = ExactSearcher(np.eye(4), ["a", "b", "c", "d"]), 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            loaded = load_updates(base, path)
        except ValueError as error:
            assert str(error) == damaged_text(path)  # noqa: PT017 - some damage does no harm
        else:
            # A date in the archive, say.
            assert_same_answers(loaded.search(np.eye(4), -1), expected)
            survived += 1
    assert survived < len(whole) / 3 / 2


def test_a_file_that_was_cut_short_is_refused(tmp_path):
    path = tmp_path / "updates.npz"
    searcher = changed_searcher()
    searcher.save(path)
    whole = path.read_bytes()
    for length in [0, 1, 10, *range(100, len(whole), 100), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with refused(damaged_text(path)):
            load_updates(searcher._base, path)


@pytest.mark.parametrize(
    "other",
    [
        {"ids": np.array(["x", "x"])},
        {"ids": np.array(["x"])},
        {"ids": np.array([1, 2])},
        {"ids": np.array(["x", None], object)},
        {"vectors": np.eye(3)[:2]},
        {"vectors": np.full((2, 4), np.nan)},
        {"dead": np.array(["z"])},
        {"dead": np.array(["b", "b"])},
        {"base_items": np.array("many")},
        {"base_items": None},
    ],
)
def test_a_file_of_other_contents_is_refused(tmp_path, other):
    path = tmp_path / "updates.npz"
    searcher = changed_searcher()
    searcher.save(path)
    with np.load(path) as stored:
        contents = {**stored, **other}
    np.savez(path, **{name: value for name, value in contents.items() if value is not None})
    with refused(damaged_text(path)):
        load_updates(searcher._base, path)


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_in_a_file_is_unpickled(tmp_path):
    path, sprung = tmp_path / "updates.npz", tmp_path / "sprung"
    np.savez(path, ids=np.array([Trap(sprung)], object))
    with refused(damaged_text(path)):
        load_updates(ExactSearcher(np.eye(2)), path)
    assert not sprung.exists()


def test_an_array_or_a_text_is_no_file_of_updates(tmp_path):
    for name, write in (
        ("array.npy", lambda path: np.save(path, np.eye(2))),
        ("text.npz", lambda path: path.write_text("hello")),
    ):
        write(tmp_path / name)
        with refused(damaged_text(tmp_path / name)):
            load_updates(ExactSearcher(np.eye(2)), tmp_path / name)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        load_updates(ExactSearcher(np.eye(2)), tmp_path / "nothing.npz")

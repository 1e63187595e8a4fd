"""Files and directories appear whole or not at all."""

import pytest

from pebr_tf.files import new_directory, replacing_file


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    for text in ("first", "second"):
        with replacing_file(path) as temporary:
            temporary.write_text(text)
        assert path.read_text() == text
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail():
        with replacing_file(path) as temporary:
            temporary.write_text("half")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("exists", [False, True])
def test_a_directory_appears_whole(tmp_path, exists):
    path = tmp_path / "out"
    if exists:
        path.mkdir()
    with new_directory(path) as temporary:
        (temporary / "a").write_text("1")
        assert not exists or not any(path.iterdir())
    assert (path / "a").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_failure_leaves_no_directory(tmp_path):
    def fail():
        with new_directory(tmp_path / "out") as temporary:
            (temporary / "a").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_something_in_it_is_rejected(tmp_path):
    (tmp_path / "kept").write_text("x")
    with (
        pytest.raises(FileExistsError, match=r"must be new or an empty directory\.$"),
        new_directory(tmp_path),
    ):
        pass
    assert (tmp_path / "kept").read_text() == "x"

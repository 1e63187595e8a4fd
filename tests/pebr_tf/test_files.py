"""A file and a directory appear whole; the tests of their writers have the failures."""

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

"""YAML in and out: what files may hold, how they are rejected, how they are written."""

import os
import re
from pathlib import Path

import pytest
import yaml

from pebr_tf.config import Config, ConfigError
from pebr_tf.config.yaml_text import parse


def file_with(directory, content):
    path = directory / "pebr.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


BAD_SYNTAX: list[tuple[str, str]] = [
    ("a: b: c\n", "mapping values are not allowed here in line 1, column 5."),
    (
        "training:\n\tseed: 1\n",
        "found character '\\t' that cannot start any token in line 2, column 1.",
    ),
    ("split: {by: pair\n", "expected ',' or '}', but got '<stream end>' in line 2, column 1."),
    ("a: *nowhere\n", "found undefined alias 'nowhere' in line 1, column 4."),
    ("a: 1\n---\nb: 2\n", "but found another document in line 2, column 1."),
    (
        "a: !!python/name:os.system\n",
        "could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/name:os.system' in line 1, column 4.",
    ),
    ("a: !!int many\n", "expected a valid int in line 1, column 4."),
    ("a: " + "9" * 5000 + "\n", "expected a valid int in line 1, column 4."),
    ("a: 1\nb: \x00\nc: 2\nd: 3\n", "character 0x00 in line 2."),
    ("? [a, b]\n: 1\n", "found unhashable key in line 1, column 3."),
    ("[" * 1000, "too many levels."),
]
REJECTED_FILES: list[tuple[str | bytes, str]] = [
    *((text, f" must be valid YAML. Received: {problem}") for text, problem in BAD_SYNTAX),
    (
        "split: {by: time}\ndata: {timestamp_column: null}\n",
        ": data.timestamp_column must name a column when split.by is time. Received: null.",
    ),
    ("", " must hold a mapping of settings. Received: an empty file."),
    ("- 1\n- 2\n", " must hold a mapping of settings. Received: [1, 2]."),
    (b"data:\n  query_column: caf\xe9\n", " must be UTF-8 text. Received: byte 0xe9 at offset 25."),
    ("a: 1\n".encode("utf-16"), " must be UTF-8 text. Received: byte 0xff at offset 0."),
    (
        "split:\n  seed: 1\n  test: 0.1\n  seed: 2\n",
        ": split.seed must appear once. Received: a second one in line 4.",
    ),
    ("training: &t\n  again: *t\n", ": training.again must be a known key ("),
    ("training: {<<: {seed: 3}}\n", ": training.<< must be a known key ("),
]


@pytest.mark.parametrize(("content", "sentence"), REJECTED_FILES)
def test_rejected_files(tmp_path, content, sentence):
    path = file_with(tmp_path, content)
    end = "$" if sentence.endswith(".") else ""
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{path}{sentence}')}{end}") as caught:
        Config.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("use", "name", "sentence"),
    [
        (Config.load, "absent.yaml", "be an existing file. Received: no such file."),
        (Config.load, "", "be a file. Received: a directory."),
        (Config.load, "pebr.yaml/a", "be a readable file. Received: Not a directory."),
        (Config().dump, "", "be a writable file. Received: Is a directory."),
        (Config().dump, "pebr.yaml/a/b", "be a writable file. Received: Not a directory."),
    ],
)
def test_what_is_no_file_or_cannot_be_written(tmp_path, use, name, sentence, rejection):
    place = file_with(tmp_path, "").parent / name
    assert rejection(use, place) == f"{place} must {sentence}"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = file_with(tmp_path, "old")

    def disk_full(self, *arguments, **options):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_text", disk_full)
    with pytest.raises(ConfigError, match=r"Received: No space left on device\.$"):
        Config().dump(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["pebr.yaml"]


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = file_with(tmp_path, b"\xef\xbb\xbftraining: {seed: 3}\r\n")
    assert Config.load(path).training.seed == 3


# The last line has numbers, dates or booleans to PyYAML's own loader, and texts here.
@pytest.mark.parametrize(
    ("scalar", "value"),
    [("1e-3", 0.001), ("1e3", 1000.0), ("-2.5e+2", -250.0), (".5", 0.5), ("1.", 1.0), ("+3", 3),
     ("010", 10), ("1_000", 1000), ("true", True), ("~", None), ("", None), ("'3'", "3"),
     *((text, text) for text in ("0x10", "12:30", "2024-01-01", "no", ".nan", ".inf", "1e"))],
)  # fmt: skip
def test_plain_scalars(scalar, value):
    parsed = parse(f"key: {scalar}\n")["key"]
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    "text",
    ["no", "null", "True", "~", "3", "1e5", "-", "a: b", "a #b", "*", " x ", "'", '"', "\\", "é",
     "二", "😀", "a\nb", "\t", "\x07x", "\x85x", "\u2028x", "\ufeffx", "[x]", "{x}", "x,y", "%x",
     "x" * 300, "a " * 150, "<<", "=", "?", "!x", "&x", "@x", "`x"],
)  # fmt: skip
def test_any_string_survives(text):
    if not text.strip():
        text += "x"
    config = Config().replace_all({"data.query_column": text, "data.payload_columns": [text, "z"]})
    assert Config.from_yaml(config.to_yaml()) == config
    assert config.to_yaml().count("\n") == Config().to_yaml().count("\n"), "one line a setting"
    # Other readers of YAML must see the same strings.
    assert yaml.safe_load(config.to_yaml())["data"]["query_column"] == text


def test_other_readers_see_the_same_default():
    small = Config().replace("training.learning_rate", 1e-5)
    for config in (Config(), small):
        assert yaml.safe_load(config.to_yaml()) == config.to_mapping()

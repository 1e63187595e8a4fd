"""`pebr config`: what it writes, prints and refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from pebr_tf.cli.config import config as command
from pebr_tf.cli.main import main
from pebr_tf.config import Config


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> int:
    """The exit code of `pebr`."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_init_writes_the_commented_default() -> None:
    result = CliRunner().invoke(command, ["init"])
    assert (result.exit_code, result.output) == (0, "Wrote pebr.yaml.\n")
    assert Path("pebr.yaml").read_text(encoding="utf-8") == Config().to_yaml()
    assert Config.load("pebr.yaml") == Config()


def test_init_takes_a_path_and_makes_its_directory() -> None:
    result = CliRunner().invoke(command, ["init", "new/mine.yaml"])
    assert (result.exit_code, result.output) == (0, "Wrote new/mine.yaml.\n")
    assert Config.load("new/mine.yaml") == Config()


def test_init_replaces_only_by_force(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("pebr.yaml")
    path.write_text("mine", encoding="utf-8")
    assert run("config", "init") == 2
    assert capsys.readouterr() == (
        "",
        "pebr: pebr.yaml must be a new file, or --force must be given. "
        "Received: a file that exists.\n",
    )
    assert path.read_text(encoding="utf-8") == "mine"
    assert run("config", "init", "--force") == 0
    assert Config.load(path) == Config()


def test_init_refuses_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    Path("place").mkdir()
    assert run("config", "init", "place", "--force") == 2
    assert capsys.readouterr().err == (
        "pebr: place must be a writable file. Received: Is a directory.\n"
    )
    assert list(Path().iterdir()) == [Path("place")]


def test_check_accepts_the_default() -> None:
    Config().dump("pebr.yaml")
    result = CliRunner().invoke(command, ["check", "pebr.yaml"])
    assert result.exit_code == 0
    assert result.output == (
        "pebr.yaml is valid.\n"
        "beta_nce on dssm towers of 128 dimensions, cut off by level at recall 0.9.\n"
        "Every setting has its default.\n"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("training: {seed: 1}", "Not at the default: training.seed."),
        (
            "training: {seed: 1, steps: 9, batch_size: 8}\nsplit: {seed: 1, by: query}",
            "Not at the default: split.by, split.seed, training.batch_size, training.steps, "
            "training.seed.",
        ),
        (
            "training: {seed: 1, steps: 9, batch_size: 8}\nsplit: {seed: 1, by: query, test: 0.2}",
            "Not at the default: split.by, split.test, split.seed, training.batch_size, "
            "training.steps and 1 more.",
        ),
    ],
)
def test_check_names_what_was_changed(text: str, line: str) -> None:
    Path("mine.yaml").write_text(text, encoding="utf-8")
    result = CliRunner().invoke(command, ["check", "mine.yaml"])
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == line


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "training:\n  batch_size: 0\n",
            "mine.yaml: training.batch_size must be an integer from 2 to 1048576. Received: 0.",
        ),
        ("", "mine.yaml must hold a mapping of settings. Received: an empty file."),
        (None, "mine.yaml must be an existing file. Received: no such file."),
    ],
)
def test_check_refuses_in_one_sentence(
    capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    if text is not None:
        Path("mine.yaml").write_text(text, encoding="utf-8")
    assert run("config", "check", "mine.yaml") == 2
    assert capsys.readouterr() == ("", f"pebr: {sentence}\n")

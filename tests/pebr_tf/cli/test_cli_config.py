"""`pebr config`: what it writes, prints and rejects."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from pebr_tf.cli.config import config as command
from pebr_tf.cli.main import main
from pebr_tf.config import Config


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_init_writes_the_commented_default():
    result = CliRunner().invoke(command, ["init"])
    assert (result.exit_code, result.output) == (0, "Wrote pebr.yaml.\n")
    assert Path("pebr.yaml").read_text(encoding="utf-8") == Config().to_yaml()
    assert Config.load("pebr.yaml") == Config()


def test_init_replaces_only_by_force(capsys):
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


def test_check_accepts_the_default():
    Config().dump("pebr.yaml")
    result = CliRunner().invoke(command, ["check", "pebr.yaml"])
    assert result.exit_code == 0
    assert result.output == (
        "pebr.yaml is valid.\n"
        "beta_nce on dssm towers of dimension auto, cut off by level at recall 0.9.\n"
        "Every setting has its default.\n"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
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
def test_check_names_what_was_changed(text, line):
    Path("mine.yaml").write_text(text, encoding="utf-8")
    result = CliRunner().invoke(command, ["check", "mine.yaml"])
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == line

"""The `pebr` command itself: help without imports, user errors in one sentence."""

import subprocess
import sys

import click
import pytest
from pebr_command import run

from pebr_tf import __version__
from pebr_tf.cli import main as command
from pebr_tf.errors import UserError


def test_help_lists_every_command_and_imports_none():
    code = (
        "import sys; from pebr_tf.cli.main import cli; cli(['--help'], standalone_mode=False); "
        "print(sorted(m for m in sys.modules if '.cli.' in m)); "
        "heavy = {'yaml', 'pebr_tf.config', 'numpy', 'pyarrow', 'tensorflow', 'tfx'}; "
        "print(heavy & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    *text, commands, heavy = result.stdout.splitlines()
    assert commands == "['pebr_tf.cli.late_group', 'pebr_tf.cli.main']"
    assert heavy == "set()"
    for name, (_, line) in command.commands().items():
        assert f"  {name} " in "\n".join(text)
        assert line in "\n".join(text)


def test_every_package_adds_its_commands():
    """The installed metadata name them: a stale set-up shows here first."""
    assert {"config", "query", "run"} <= set(command.commands())


@pytest.mark.parametrize("name", command.commands())
def test_every_command_exists_with_the_help_of_its_table(name):
    found = command.cli.get_command(click.Context(command.cli), name)
    assert found.help.splitlines()[0] == command.commands()[name][1]


def test_the_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"pebr, version {__version__}\n"


def test_an_unknown_command_exits_with_2(capsys):
    assert run("serv") == 2
    assert "No such command 'serv'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            UserError("--items must be at least 100. Received: 5."),
            "--items must be at least 100. Received: 5.",
        ),
        (
            ModuleNotFoundError("No module named 'tfx'"),
            "the packages that this command imports must be installed, for example by pip install "
            "'.[pipeline,cloud,experiments]' in a clone, or '.[pipeline,kubeflow]'. Received: No "
            "module named 'tfx'.",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_exits_with_2(monkeypatch, capsys, error, sentence):
    @click.command()
    def broken():
        raise error

    monkeypatch.setattr(command.cli, "get_command", lambda context, name: broken)
    assert run("generate") == 2
    assert capsys.readouterr() == ("", f"pebr: {sentence}\n")

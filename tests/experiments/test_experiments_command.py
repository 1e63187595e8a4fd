"""`python -m experiments` as a user runs it: output, files, interruption, and rejected input."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path

import pytest

from experiments import EXPERIMENTS
from experiments.__main__ import experiment
from experiments.results import Results, Table
from experiments.step import Step
from pebr_tf.cli.late_group import run_command

NAMES = ", ".join([*EXPERIMENTS, "all"])


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        run_command(experiment, "python -m experiments", list(map(str, arguments)))
    return int(exit_.value.code or 0)


class Experiment(types.ModuleType):
    """An experiment of two steps; the second may be stopped."""

    TITLE = "Title [bold]"

    def __init__(self, name: str):
        super().__init__(name)
        self.name, self.computed, self.stopped, self.settings = name, [], False, None

    def _compute(self, step: str) -> dict[str, str]:
        self.computed.append(step)
        if step == "second" and self.stopped:
            raise KeyboardInterrupt
        return {"step": step}

    def steps(self, settings):
        self.settings = settings
        sources = ("pebr_tf.files",)
        first, second = (
            Step(
                step,
                {"of": self.name, "step": step},
                sources,
                lambda step=step: self._compute(step),
            )
            for step in ("first", "second")
        )
        return {"a": first, "b": second}

    def results(self, settings, outputs):
        table = Table("Table", ("step", "number"), ((outputs["b"]["step"], "1,234"),))
        return Results(self.TITLE, ("Found.",), {"seeds": settings.seeds}, (table,), ())


@pytest.fixture
def experiments(monkeypatch):
    """Stands for the real ones."""
    made = {name: Experiment(name) for name in ("one", "two")}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, f"experiments.fake_{name}", module)
    known = {name: (f"experiments.fake_{name}", "Help.") for name in made}
    monkeypatch.setattr("experiments.__main__.EXPERIMENTS", known)
    return made


def lines_of(capsys) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_what_is_printed_and_written(experiments, tmp_path, capsys):
    assert run("one", "--out", tmp_path / "out") == 0
    lines = lines_of(capsys)
    assert lines[:3] == [
        "Title [bold]",
        "Synthetic logs only; --goodbooks PATH adds goodbooks-10k.",
        "2 steps to compute",
    ]
    assert [line.split(":")[0] for line in lines[3:5]] == ["[1/2] first", "[2/2] second"]
    assert ["second", "1,234"] in [line.split() for line in lines]
    assert lines[-1] == f"Wrote {tmp_path / 'out' / 'one' / 'index.html'}."
    assert {path.name for path in (tmp_path / "out" / "one").iterdir()} == {
        *("index.html", "figures.json", "tables.md"),
    }
    assert len(list((tmp_path / "out" / "cache").iterdir())) == 2
    assert experiments["one"].settings.scale == "full"


@pytest.mark.parametrize(
    ("arguments", "seeds"),
    [((), 3), (("--scale", "small"), 1), (("--scale", "small", "--seeds", 100), 100)],
)
def test_the_seeds(arguments, seeds, experiments, tmp_path):
    assert run("one", "--out", tmp_path, *arguments) == 0
    assert json.loads((tmp_path / "one" / "figures.json").read_text()) == {"seeds": seeds}


def test_all_are_run_in_turn_and_a_second_time_nothing_is_computed(experiments, tmp_path, capsys):
    assert run("all", "--out", tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "one", "two"}
    capsys.readouterr()
    assert run("all", "--out", tmp_path) == 0
    assert lines_of(capsys).count("0 steps to compute, 2 there already") == 2
    assert [each.computed for each in experiments.values()] == [["first", "second"]] * 2


def test_a_run_that_is_stopped_says_so_and_goes_on(experiments, tmp_path, capsys):
    experiments["one"].stopped = True
    assert run("one", "--out", tmp_path) == 130
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == (
        f"Stopped; finished steps are kept in {tmp_path / 'cache'}, and the same command goes on "
        "from there."
    )
    assert captured.err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    experiments["one"].stopped = False
    assert run("one", "--out", tmp_path) == 0
    assert "1 step to compute, 1 there already" in capsys.readouterr().out
    assert experiments["one"].computed == ["first", "second", "second"]


@pytest.fixture
def library(tmp_path) -> Path:
    folder = tmp_path / "goodbooks"
    folder.mkdir()
    (folder / "books.csv").write_text("goodreads_book_id,title\n1,A\n")
    (folder / "tags.csv").write_text("tag_id,tag_name\n1,a\n")
    (folder / "book_tags.csv.zip").write_text("looked at when it is read")
    return folder


def rejected(capsys, message: str, *arguments: object) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.err == f"experiments: {message}\n"
    assert captured.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cutoff",), f"NAME must be one of {NAMES}. Received: cutoff."),
        (("cutoffs", "--seeds", "0"), "--seeds must be from 1 to 100. Received: 0."),
        (("cutoffs", "--seeds", "101"), "--seeds must be from 1 to 100. Received: 101."),
    ],
)
def test_rejected_arguments(arguments, message, tmp_path, capsys):
    rejected(capsys, message, *arguments, "--out", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        (
            "books.csv",
            "{0} must hold books.csv of goodbooks-10k with the columns goodreads_book_id, title. "
            "Received: [Errno 2] No such file or directory: '{0}/books.csv'.",
        ),
        (
            "tags.csv",
            "{0} must hold tags.csv of goodbooks-10k with the columns tag_id, tag_name. "
            "Received: [Errno 2] No such file or directory: '{0}/tags.csv'.",
        ),
        (
            "book_tags.csv.zip",
            "{0} must hold book_tags.csv or book_tags.csv.zip of goodbooks-10k. Received: neither.",
        ),
    ],
)
def test_a_folder_without_the_books_is_rejected(removed, message, library, tmp_path, capsys):
    (library / removed).unlink()
    arguments = ("--out", tmp_path / "out", "--goodbooks", library)
    rejected(capsys, message.format(library), "cutoffs", *arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("below", "reason"), [("", "File exists"), ("x", "Not a directory")])
def test_a_file_in_place_of_the_folder_is_rejected(below, reason, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / below
    message = f"--out must be a folder that can be written. Received: {out} ({reason})."
    rejected(capsys, message, "cutoffs", "--out", out)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_file_in_place_of_the_cache_is_rejected_before_anything_runs(tmp_path, capsys):
    (tmp_path / "cache").write_text("mine")
    message = f"--out must be a folder that can be written. Received: {tmp_path} (Not a directory)."
    rejected(capsys, message, "cutoffs", "--out", tmp_path)
    assert (tmp_path / "cache").read_text() == "mine"


@pytest.mark.parametrize("name", ["cutoffs", "all"])
def test_a_folder_with_other_content_is_rejected_before_anything_runs(name, tmp_path, capsys):
    (tmp_path / "cutoffs").mkdir()
    (tmp_path / "cutoffs" / "thesis.tex").write_text("mine")
    message = (
        f"{tmp_path / 'cutoffs'} must be new, empty or an earlier experiment's, as it is replaced. "
        "Received: other content."
    )
    rejected(capsys, message, name, "--out", tmp_path)
    assert {path.name for path in tmp_path.rglob("*")} == {"cutoffs", "thesis.tex"}


def test_help_lists_the_experiments_and_imports_nothing_heavy():
    code = (
        "import sys; from experiments.__main__ import experiment; "
        "experiment(['--help'], standalone_mode=False); "
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'tensorflow', 'matplotlib', "
        "'pyarrow', 'sklearn', 'scipy'}))"
    )
    lines = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert lines[-1] == "[]"
    section = lines[lines.index("Experiments:") + 1 : -1]
    listed = [line.split()[0] for line in section if line.startswith("  ") and line[2] != " "]
    assert listed == [*EXPERIMENTS, "all"]
    shown = " ".join(" ".join(lines).split())
    for name, (_, text) in EXPERIMENTS.items():
        assert f"{name} {text}" in shown

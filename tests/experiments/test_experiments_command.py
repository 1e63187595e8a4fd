"""`python -m experiments` as a user runs it: output, files, interruption, and rejected input."""

import json
import sys
import types

import pytest

from experiments import EXPERIMENTS
from experiments.__main__ import experiment
from experiments.results import ExperimentResults, ResultTable
from experiments.step import Step
from pebr_tf.cli.late_group import run_command

NOT_ONE = "Not a directory"
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

        def step(name):
            key = {"of": self.name, "step": name}
            return Step(name, key, ("pebr_tf.files",), lambda: self._compute(name))

        return {"a": step("first"), "b": step("second")}

    def results(self, settings, outputs):
        table = ResultTable("Table", ("step", "number"), ((outputs["b"]["step"], "1,234"),))
        return ExperimentResults(self.TITLE, ("Found.",), {"seeds": settings.seeds}, (table,), ())


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
    only = "Synthetic logs only; --goodbooks PATH adds goodbooks-10k."
    assert lines[:3] == ["Title [bold]", only, "2 steps to compute"]
    assert [line.split(":")[0] for line in lines[3:5]] == ["[1/2] first", "[2/2] second"]
    assert ["second", "1,234"] in [line.split() for line in lines]
    assert lines[-1] == f"Wrote {tmp_path / 'out' / 'one' / 'index.html'}."
    assert json.loads((tmp_path / "out" / "one" / "figures.json").read_text()) == {"seeds": 3}
    assert len(list((tmp_path / "out" / "cache").iterdir())) == 2
    assert experiments["one"].settings.scale == "full"


def test_all_are_run_in_turn_and_a_second_time_nothing_is_computed(experiments, tmp_path, capsys):
    assert run("all", "--out", tmp_path, "--scale", "small") == 0
    assert json.loads((tmp_path / "two" / "figures.json").read_text()) == {"seeds": 1}
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "one", "two"}
    capsys.readouterr()
    assert run("all", "--out", tmp_path, "--scale", "small") == 0
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


def rejected(capsys, message: str, *arguments: object) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr() == ("", f"experiments: {message}\n")


def test_rejected_arguments(tmp_path, capsys):
    for arguments, message in {
        ("cutoff",): f"NAME must be one of {NAMES}. Received: cutoff.",
        ("cutoffs", "--seeds", "0"): "--seeds must be from 1 to 100. Received: 0.",
        ("cutoffs", "--seeds", "101"): "--seeds must be from 1 to 100. Received: 101.",
    }.items():
        rejected(capsys, message, *arguments, "--out", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_the_books_is_rejected(experiments, tmp_path, capsys):
    library, out = tmp_path / "goodbooks", tmp_path / "out"
    library.mkdir()
    (library / "books.csv").write_text("goodreads_book_id,title\n1,A\n")
    (library / "tags.csv").write_text("tag_id,tag_name\n1,a\n")
    one_of = "book_tags.csv or book_tags.csv.zip"
    message = f"{library} must hold {one_of} of goodbooks-10k. Received: neither."
    rejected(capsys, message, "one", "--out", out, "--goodbooks", library)
    assert not out.exists()
    (library / "book_tags.csv.zip").write_text("looked at when it is read")
    assert run("one", "--out", out, "--goodbooks", library) == 0
    assert experiments["one"].settings.datasets == ("synthetic", "goodbooks")
    assert "Synthetic logs only" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "out", "reason"),
    [("file", "file", "File exists"), ("file", "file/x", NOT_ONE), ("cache", "", NOT_ONE)],
)
def test_a_file_in_place_of_a_folder_is_rejected(file, out, reason, tmp_path, capsys):
    (tmp_path / file).write_text("mine")
    out = tmp_path / out
    message = f"--out must be a folder that can be written. Received: {out} ({reason})."
    rejected(capsys, message, "cutoffs", "--out", out)
    assert (tmp_path / file).read_text() == "mine"


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

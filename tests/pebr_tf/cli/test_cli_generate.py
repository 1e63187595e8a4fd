"""`pebr generate`: what it prints, what it writes, how it refuses."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from pebr_tf.cli.generate import _progress, generate
from pebr_tf.cli.main import main

SMALL = ["--items=300", "--queries=200", "--clicks=1000"]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit:
        main(["generate", *arguments])
    return int(exit.value.code or 0)


def test_it_writes_and_sums_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert run(f"--out={out}", *SMALL, "--seed=5", "--noise=0", "--format=jsonl") == 0
    printed = capsys.readouterr()
    description = json.loads((out / "dataset.json").read_text())
    assert description["format"] == "jsonl"
    assert description["parameters"] == {
        "items": 300,
        "queries": 200,
        "clicks": 1_000,
        "seed": 5,
        "noise": 0.0,
    }
    statistics = description["statistics"]
    relevant = (
        f"p10 {statistics['relevant_p10']}, p50 {statistics['relevant_p50']}, "
        f"p90 {statistics['relevant_p90']}, max {statistics['relevant_max']}"
    )
    assert printed.err == ""
    assert printed.out.splitlines() == [
        "world               300 of 300",
        "catalogue           300 of 300",
        "truth               200 of 200",
        "clicks            1,000 of 1,000",
        "items                     300",
        "queries                   200",
        "clicks                    1,000",
        f"relevant items per query  {relevant}",
        f"popularity and breadth    Spearman {statistics['breadth_correlation']:.2f}",
        "noise                     0.0% of the clicks",
        f"Wrote {out}.",
    ]


def test_the_defaults_are_the_demo_s() -> None:
    defaults = {option.name: option.default for option in generate.params}
    assert {name: defaults[name] for name in ("items", "queries", "clicks", "seed", "noise")} == {
        "items": 20_000,
        "queries": 8_000,
        "clicks": 300_000,
        "seed": 0,
        "noise": 0.05,
    }
    assert defaults["format"] == "parquet"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--items=5"], "pebr: --items must be an integer from 100 to 50000000. Received: 5.\n"),
        (["--noise=1"], "pebr: --noise must be a number from 0 to below 1. Received: 1.0.\n"),
        (
            ["--clicks=-3"],
            "pebr: --clicks must be an integer from 1 to 10000000000. Received: -3.\n",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert run(f"--out={tmp_path / 'demo'}", *arguments) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", text)
    assert not list(tmp_path.iterdir())


def test_too_many_queries_say_how_many_are_possible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"--out={tmp_path / 'demo'}", "--items=100") == 2
    error = capsys.readouterr().err
    assert error.startswith("pebr: --queries must be at most ")
    assert error.endswith(
        ", which is all that this catalogue of 100 items can answer. Received: 8000.\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_directory_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    assert run(f"--out={tmp_path}", *SMALL) == 2
    text = f"pebr: --out must be a new or an empty directory. Received: {tmp_path}.\n"
    assert capsys.readouterr().err == text
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Missing option '--out'"),
        (["--out=x", "--items=many"], "'many' is not a valid integer"),
        (["--out=x", "--format=xml"], "'xml' is not one of 'parquet', 'csv', 'jsonl'"),
    ],
)
def test_what_click_refuses_exits_with_2(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(generate, arguments)
    assert result.exit_code == 2
    assert text in result.output


def test_help_loads_nothing_heavy_and_generating_no_tensorflow(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pebr_tf.cli.generate import generate\n"
        "heavy = {'numpy', 'pyarrow', 'pandas', 'tensorflow'} & set(sys.modules)\n"
        "generate.main(sys.argv[1:], standalone_mode=False)\n"
        "sys.exit(str(heavy) if heavy else 'tensorflow' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, f"--out={tmp_path / 'demo'}", *SMALL]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "demo" / "dataset.json").is_file()


def test_a_terminal_gets_bars_that_go_away() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with _progress(console) as progress:
        progress("clicks", 0, 2_000_000)
        progress("clicks", 1_000_000, 2_000_000)
    assert "1,000,000 of 2,000,000" in screen.getvalue()
    erase_line = "\x1b[2K"
    assert screen.getvalue().endswith(erase_line)


def test_a_file_gets_at_most_ten_lines_a_part() -> None:
    screen = io.StringIO()
    with _progress(Console(file=screen, width=100)) as progress:
        for done in range(0, 88):
            progress("clicks", done * 1_000_000, 87_000_000)
    lines = screen.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1] == "clicks       87,000,000 of 87,000,000"

"""`pebr generate`: what it prints, what it writes, what it imports."""

import json
import subprocess
import sys

from pebr_command import run

from pebr_tf.cli.generate import generate
from pebr_tf.data.synthetic import SyntheticSpec
from pebr_tf.data.synthetic.writer import FORMATS

SMALL = ["--items=300", "--queries=200", "--clicks=1000"]


def test_it_writes_and_sums_up(tmp_path, capsys):
    out = tmp_path / "demo"
    assert run("generate", f"--out={out}", *SMALL, "--seed=5", "--noise=0", "--format=jsonl") == 0
    printed = capsys.readouterr()
    description = json.loads((out / "dataset.json").read_text())
    assert description["format"] == "jsonl"
    assert list(description["parameters"].values()) == [300, 200, 1_000, 5, 0.0]
    statistics = description["statistics"]
    relevant = (
        f"p10 {statistics['relevant_p10']}, p50 {statistics['relevant_p50']}, "
        f"p90 {statistics['relevant_p90']}, max {statistics['relevant_max']}"
    )
    assert printed.err.splitlines() == [
        "world               300 of 300",
        "catalogue           300 of 300",
        "truth               200 of 200",
        "clicks            1,000 of 1,000",
    ]
    assert printed.out.splitlines() == [
        "items                     300",
        "queries                   200",
        "clicks                    1,000",
        f"relevant items per query  {relevant}",
        f"popularity and breadth    Spearman {statistics['breadth_correlation']:.2f}",
        "noise                     0.0% of the clicks",
        f"Wrote {out}.",
    ]


def test_the_defaults_are_those_of_the_library():
    options = {option.name: option.default for option in generate.params}
    assert options["format"] == FORMATS[0]
    assert {name: options[name] for name in vars(SyntheticSpec())} == vars(SyntheticSpec())


def test_help_loads_nothing_heavy_and_generating_no_tensorflow(tmp_path):
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

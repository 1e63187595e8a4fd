"""`pebr config`: what it writes, prints and rejects."""

import subprocess
import sys
from pathlib import Path

import pytest
from pebr_command import run

from pebr_tf.config import Config


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_init_writes_the_commented_default(capsys):
    assert run("config", "init") == 0
    assert capsys.readouterr() == ("Wrote pebr.yaml.\n", "")
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


def test_check_accepts_the_default(capsys):
    Config().dump("pebr.yaml")
    assert run("config", "check", "pebr.yaml") == 0
    assert capsys.readouterr().out == (
        "pebr.yaml is valid.\n"
        "beta_nce on dssm towers of dimension auto, cut off by level at recall auto.\n"
        "Every setting has its default.\n"
    )


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("", "split.by, split.seed, training.batch_size, training.steps, training.seed."),
        (
            ", test: 0.2",
            "split.by, split.test, split.seed, training.batch_size, training.steps and 1 more.",
        ),
    ],
)
def test_check_names_what_was_changed(capsys, more, named):
    text = f"training: {{seed: 1, steps: 9, batch_size: 8}}\nsplit: {{seed: 1, by: query{more}}}"
    Path("mine.yaml").write_text(text, encoding="utf-8")
    assert run("config", "check", "mine.yaml") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Not at the default: {named}"


def test_init_fits_the_files_and_check_looks_at_them(capsys):
    rows = "".join(f"a lamp,{n},{n / 7}\n" for n in range(60))
    Path("log.csv").write_text(f"keyword,sku,score\n{rows}")
    assert run("config", "init", "--clicks", "log.csv") == 0
    columns = "Columns: query (text): keyword; item id: sku.\n"
    assert capsys.readouterr().out == (
        f"Wrote pebr.yaml.\n{columns}Not used: score (number).\n"
        "Next: pebr config check pebr.yaml --data, then pebr run --config pebr.yaml\n"
    )
    assert run("config", "check", "pebr.yaml", "--data") == 2
    out, err = capsys.readouterr()
    assert columns in out
    assert "click log: 60 rows.\n" in out
    # One query is held out for one of the splits only.
    assert err.startswith("pebr: Every split must have a click (split.by: pair; ")
    assert "note: 0 queries calibrate, fewer than 200 (" in out
    # A run says the same at once.
    assert run("run", "--config", "pebr.yaml") == 2
    assert capsys.readouterr().err == err


def test_check_data_lists_every_missing_file(capsys):
    Config().dump("pebr.yaml")
    assert run("config", "check", "pebr.yaml", "--data") == 2
    assert capsys.readouterr().err == "".join(
        f"pebr: data.{key} must name a file, or files by a glob. Received: data/{place}/*: "
        "no such file.\n"
        for key, place in (("click_log", "clicks"), ("catalogue", "catalogue"))
    )


def test_a_catalogue_alone_is_not_enough(capsys):
    assert run("config", "init", "--catalogue", "items.csv") == 2
    assert capsys.readouterr().err == (
        "pebr: --catalogue must come with --clicks. Received: items.csv.\n"
    )


def test_run_reports_a_missing_log_before_it_imports_tfx():
    """In a process of its own: this one may have imported TFX."""
    Config().dump("pebr.yaml")
    code = (
        "import sys\nfrom pebr_tf.cli.main import main\n"
        "try:\n    main(['run', '--config', 'pebr.yaml'])\n"
        "finally:\n    print(sorted({'tfx', 'tensorflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    assert done.stderr.startswith("pebr: data.click_log must name a file, or files by a glob. Rec")

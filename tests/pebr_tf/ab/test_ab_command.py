"""`pebr ab` as a user runs it: what it prints, what it writes, what it rejects."""

import json
from pathlib import Path

import pebr_command
import pytest
from text_tables import cases


def run(*arguments):
    return pebr_command.run("ab", *arguments)


@pytest.fixture
def log(tmp_path):
    """100 users an arm, of two rows each; 40 and 60 of them order, the past is the place."""
    lines = ["user,arm,searches,clicks,orders,money,past,flat"]
    for arm, ordering in (("control", 40), ("new", 60)):
        for user in range(100):
            did = int(user < ordering)
            lines.append(f"{arm}{user},{arm},2,1,0,1.5,{user},7")
            lines.append(f"{arm}{user},{arm},3,1,{did},0,{user},7")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_read_out(log, capsys):
    """The figures by hand; docs/ab.md, which is tested, has the whole of what is printed."""
    assert run(log) == 0
    # orders/searches: each variance is .24 / 99 / 25, the margin 1.96 sqrt(2 * that) and the log
    # margin 1.96 sqrt(that / .08^2 + that / .12^2); orders: z = .2 / sqrt(.25 / 50).
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "control 100 200 50.00% 50.00% new 100 200 50.00% 50.00% Sample ratio: as expected, p = 1.",
        "clicks/searches control 0.4000 new 0.4000 +0.0000 ± 0.0000 +0.0% (+0.0 to +0.0) –",
        "orders/searches control 0.0800 new 0.1200 +0.0400 ± 0.0273 +50.0% (+12.2 to +100.5) 0.004",
        "with orders control 0.4000 new 0.6000 +0.2000 ± 0.1358 +50.0% (+12.4 to +100.2) 0.005",
    ):
        assert words in text


def test_named_metrics_the_past_and_all_figures_as_json(log, tmp_path, capsys):
    output = tmp_path / "new" / "figures.json"
    arguments = ("--ratio=money/searches", "--mean=money", "--binary=orders")
    arguments += ("--before=orders=past",)
    assert run(log, *arguments, "--control=new", "--confidence=.9", "--json", output) == 0
    printed = capsys.readouterr().out
    assert "lift (90% interval)" in printed
    assert f"Wrote {output}." in printed.replace("\n", "")
    figures = json.loads(output.read_text())
    assert figures["arms"] == ["new", "control"]
    assert figures["sample_ratio"]["p_value"] == 1.0
    names = [metric["name"] for metric in figures["metrics"]]
    assert names == ["money/searches", "money per user", "users with orders"]
    money, _, orders = figures["metrics"]
    assert money["cuped"] is None
    assert money["arms"][1]["comparison"]["p_value"] is None
    assert orders["past"] == ["past"]
    assert orders["arms"][1]["value"] == pytest.approx(0.4)
    # Both pasts are alike: the estimate stays, the variance falls.
    assert orders["cuped"][1]["comparison"]["difference"] == pytest.approx(-0.2)
    reduction = orders["variance_reduction"][0]
    assert 0.6 < reduction < 0.8
    assert f"CUPED, users with orders: past took off {reduction:.0%} of the variance." in printed
    assert [path.name for path in output.parent.iterdir()] == ["figures.json"]


def test_a_sample_ratio_mismatch_comes_first(log, capsys):
    assert run(log, "--expected=control=2,new=1") == 0
    words = " ".join(capsys.readouterr().out.split())
    assert words.startswith(
        "WARNING: Sample-ratio mismatch (p = 6e-07): the arms do not have the users that they "
        "should. Find the cause before you use any figure below."
    )
    assert "Sample ratio: mismatch, p < 0.001." in words


def test_notes_on_what_weakens_the_figures(tmp_path, capsys):
    path = tmp_path / "log.csv"
    rows = [f"{user},{'ab'[user % 2]},{int(user < 9)}" for user in range(60)]
    path.write_text("\n".join(["user,arm,converted", *rows, "0,b,1"]) + "\n")
    assert run(path) == 0
    assert " ".join(capsys.readouterr().out.split()).startswith(
        "Note: 1 of 60 users were seen in more than one arm and are left out. "
        "Note: a has 29 users: with fewer than 100 the intervals are too narrow. "
        "Note: users with converted: fewer than 10 users of an arm have (or lack) it; the "
        "figures are rough. "
    )


# An argument, and below it the sentence that rejects it.
REJECTIONS = """\
--ratio=clicks
    --ratio must be NUMERATOR/DENOMINATOR, as clicks/searches. Received: clicks.
--mean=
    --mean and --binary must name a column. Received: nothing.
--mean=euros
    {} must have the column euros. Received: user, arm, searches, clicks, orders, money, past,
    flat.
--before=clicks
    --before must be COLUMN=PAST, as clicks=clicks_before. Received: clicks.
--before=money=past
    --before must name a column of a metric: clicks, searches, orders. Received: money.
--before=clicks=searches
    --before must name a past, which was there before the test, and not a column of a metric.
    Received: clicks=searches.
--before=clicks=flat
    flat must differ between the users of an arm to predict anything. Received: 7 for all.
--control=old
    --control must be an arm of the file: control, new. Received: old.
--ratio=clicks/orders
    a user with clicks must have orders. Received: 2 and 0 of user control40.
--expected=control=1
    --expected must name the arms of the file: control, new. Received: control.
--expected=control=1,new=0
    --expected must be ARM=WEIGHT,..., with each arm once and weights above 0. Received:
    control=1,new=0.
--confidence=95
    --confidence must be above 0 and at most 0.9999. Received: 95.
--confidence=nan
    --confidence must be above 0 and at most 0.9999. Received: nan.
"""


@pytest.mark.parametrize(("argument", "message"), cases(REJECTIONS))
def test_rejections(argument, message, log, tmp_path, capsys):
    assert run(log, argument, f"--json={tmp_path / 'a.json'}") == 2
    assert capsys.readouterr() == ("", f"pebr: {message.format(log)}\n")
    assert not (tmp_path / "a.json").exists()


# The rows of a file, and below them the sentence that rejects it.
NO_METRIC = """\
user,arm,n / 1,a,1
    --ratio, --mean or --binary must name a metric where the file has no columns searches and
    clicks, or orders, conversions or converted. Received: none.
user,arm,n
    {} must have rows. Received: none.
user,arm,searches,clicks / 1,a,0,0 / 2,a,0,0 / 3,b,1,1 / 4,b,1,1
    a must have searches. Received: 0 in all.
"""


@pytest.mark.parametrize(("rows", "message"), cases(NO_METRIC))
def test_files_that_hold_no_metric_are_rejected(rows, message, tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(rows.replace(" / ", "\n") + "\n")
    assert run(path) == 2
    assert capsys.readouterr().err == f"pebr: {message.format(path)}\n"


def test_the_log_is_not_overwritten(log, tmp_path, capsys, monkeypatch):
    before = log.read_bytes()
    monkeypatch.chdir(tmp_path)
    for name in (log, Path("log.csv")):
        assert run(log, f"--json={name}") == 2
        assert capsys.readouterr().err == (
            f"pebr: --json must be another file than the log. Received: {name}.\n"
        )
    assert log.read_bytes() == before


def test_figures_that_cannot_be_written_are_shown_all_the_same(log, capsys):
    assert run(log, f"--json={log / 'a.json'}") == 2
    captured = capsys.readouterr()
    sentence = f"--json must be a file that can be written. Received: {log}/a.json (File exists)."
    assert captured.err == f"pebr: {sentence}\n"
    assert "users with orders" in captured.out

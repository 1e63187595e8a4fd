"""The report is one safe file with the right numbers, whatever an evaluation lacks."""

import copy
import json
import math
import resource

import pytest
from evaluation_example import example, refused
from page_reader import read, under

from pebr_tf.report import outcome, write_report


def report(evaluation, tmp_path):
    path = tmp_path / "report.html"
    write_report(evaluation, path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    return read(text)


def test_nothing_is_loaded_and_nothing_runs(tmp_path):
    page = report(example(), tmp_path)
    assert not {node.tag for node in page.all()} & {"script", "link", "img", "iframe", "object"}
    for node in page.all():
        assert not any(name == "src" or name.startswith("on") for name in node.attributes)
        assert node.attributes.get("href", "#").startswith("#")
    whole = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not any(word in whole for word in ("http:", "https:", "url(", "@import"))
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_names_and_heads_for_those_who_hear_it(tmp_path):
    page = report(example(), tmp_path)
    identifiers = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(identifiers) == len(set(identifiers))
    for node in page.all():
        for name in node.attributes.get("aria-labelledby", "").split():
            assert name in identifiers
    for link in page.one("nav").all("a"):
        assert link.attributes["href"][1:] in identifiers
    assert all("scope" in head.attributes for head in page.all("th"))
    charts = page.all("svg", role="img")
    assert len(charts) == 4
    for chart in charts:
        title, description = chart.children[:2]
        assert (title.tag, description.tag) == ("title", "desc")
        assert title.text
        assert description.text


def test_every_row_is_as_wide_as_its_head(tmp_path):
    for table in report(example(), tmp_path).all("table"):
        widths = {
            sum(int(cell.attributes.get("colspan", 1)) for cell in row.children)
            for row in [table.one("thead").children[0], *table.all("tr")[-3:]]
        }
        assert len(widths) == 1, table.text


def test_headline_and_tiles(tmp_path):
    page = report(refused(), tmp_path)
    assert page.one("h1").text == "Not blessed: recall lift -0.012 is below the required 0.00."
    assert page.one("h1").one("span").attributes["class"] == "bad"
    page = report(example(), tmp_path)
    assert page.one("h1").text == outcome(example())
    tiles = page.one("dl", class_="tiles").children
    assert [[part.text for part in tile.children] for tile in tiles] == [
        ["Recall at k = 150", "0.851", "top_k 0.795, +0.056"],
        ["Precision at k = 150", "0.100", "top_k 0.070, +0.030"],
        ["Calibration error", "0.004", "worst stratum: tail 0.018"],
        ["Empty rate", "0.1%", "at recall 0.9"],
        ["Items, median query", "42", "p99 4,120"],
        ["Index recall", "0.994", "against exact search; micro 0.997"],
        ["Latency, p99", "4.21 ms", "batch of 1; median 1.83 ms"],
    ]


def test_policies_with_the_best_marked_and_the_oracle_apart(tmp_path):
    page = report(example(), tmp_path)
    table = under(page, "policies").one("table")
    rows = {row[0]: row[1:] for row in table.rows()}
    level = ["0.187", "0.762", "0.100", "0.851", "0.035", "0.924", "0.0%"]
    assert rows["level, T = 0.6default"] == level
    assert rows["literal pEBR (CDF)"][2:4] == ["0.138", "0.483"]
    assert rows["literal pEBR (CDF)"][-1] == "9.0%"
    best = [cell.text for cell in table.all("b")]
    assert best == ["0.762", "0.851", "0.924", "0.219", "0.138", "0.115"]
    assert table.one("tr", class_="default").text.startswith("level, T = 0.6")
    apart = table.one("tbody", class_="apart").rows()
    assert apart == [["oracle", "0.402", "0.905", "0.168", "0.948", "0.052", "0.981", "0.0%"]]


def test_strata_and_the_gain_in_each(tmp_path):
    tables = under(report(example(), tmp_path), "strata").all("table")
    captions = [table.one("caption").text for table in tables]
    assert captions[:2] == ["Head: 143 of 2,391 queries", "Torso: 562 of 2,391 queries"]
    # 2.4 times .124 and .688 less .035, as the example makes its head.
    assert ["top k", "0.298", "0.653"] in [row[:3] for row in tables[0].rows()]
    # 0.6 times (.187 - .124), and .762 - .688.
    assert tables[3].rows()[-1][:3] == ["tail", "+0.038", "+0.074"]


def test_an_average_that_was_not_met_is_named(tmp_path):
    evaluation = example()
    evaluation["policies"][6]["at"]["150"]["overall"]["average"] = 131.24
    section = under(report(evaluation, tmp_path), "policies")
    assert section.all("p")[-1].text == "Averages that could not be met: nucleus 131 at k = 150."


def test_single_tables(tmp_path):
    page = report(example(), tmp_path)
    calibration = under(page, "calibration").one("table")
    served = ["0.900", "0.903", "0.912", "0.906", "0.884", "302"]
    assert served in calibration.rows()
    assert calibration.one("tr", class_="default").one("th").text == "0.900"
    assert calibration.rows()[-1] == ["mean error", "0.004", "0.014", "0.007", "0.018", ""]
    assert under(page, "budget").one("table").rows()[1:3] == [
        ["50", "51.2", "+2.4%"],
        ["150", "148", "−1.5%"],
    ]
    gates = under(page, "gates").one("table").rows()
    assert gates[1] == ["precision over top_k at k = 150", "≥ 0.00", "0.429", "✓ passed"]
    examples = under(page, "examples").one("table").rows()
    assert examples[1] == ["huawei phone", "head", "1,873", "412", "398", "0.413"]
    assert len(examples) == 13
    unseen = under(page, "unseen").one("table").rows()
    # .851 less .031.
    assert [row[4] for row in unseen if row[0].startswith("level, T")] == ["0.820"]


def test_what_calibration_promises_is_shown_where_it_is_not_what_was_asked(tmp_path):
    evaluation = example()
    asked = evaluation["calibration"]["asked"]
    evaluation["calibration"]["promised"] = {"overall": [*asked]}
    rows = under(report(evaluation, tmp_path), "calibration").one("table").rows()
    assert rows[0][:2] == ["asked", "overall"]
    evaluation["calibration"]["promised"] = {"overall": [*asked[:-1], 0.931]}
    rows = under(report(evaluation, tmp_path), "calibration").one("table").rows()
    assert rows[0][:3] == ["asked", "promised", "overall"]
    assert rows[-2][:3] == ["0.950", "0.931", "0.952"]
    assert rows[-1][:3] == ["mean error", "", "0.004"]


def test_comparison_with_the_previous_release(tmp_path):
    evaluation = example()
    # Rounds to nothing, though not equal.
    evaluation["previous"]["index"]["recall_macro"] += 0.0004
    evaluation["previous"]["default_knob"]["figures"]["p99"] = 4620
    evaluation["previous"]["default_knob"]["figures"]["empty"] = None
    rows = under(report(evaluation, tmp_path), "previous").one("table").rows()
    assert rows[0][1] == "release 1731"
    found = {row[0]: row[1:] for row in rows}
    assert found["recall at k = 150"] == ["0.838", "0.851", "+0.013", "better"]
    assert found["precision at k = 150"] == ["0.104", "0.100", "−0.004", "worse"]
    assert found["calibration error"] == ["0.009", "0.004", "−0.005", "better"]
    assert found["index recall"][2:] == ["0.000", "the same"]
    assert found["items a query, p99"] == ["4,620", "4,120", "−500", "fewer"]
    assert found["empty rate"] == ["–", "0.1%", "–", "–"]
    assert found["latency, p99"][2:] == ["+0.31 ms", "worse"]


def test_comparison_with_the_last_blessed_model(tmp_path):
    evaluation = example()
    assert "Last blessed model" not in report(evaluation, tmp_path).text
    earlier = [copy.deepcopy(each) for each in evaluation["policies"]]
    kept = [each for each in earlier if each["default"] or each["name"] == "top_k"]
    for each in kept:
        each["at"]["150"]["overall"].update(recall=0.8 if each["default"] else 0.7)
    evaluation["baseline"] = {"model": "run/Trainer/model/3", "policies": kept}
    rows = under(report(evaluation, tmp_path), "baseline").one("table").rows()
    assert rows[0] == [
        "measure",
        "its top_k",
        "its default policy",
        "this one",
        "change",
        "which is",
    ]
    found = {row[0]: row[1:] for row in rows}
    assert found["recall at k = 150"] == ["0.700", "0.800", "0.851", "+0.051", "better"]
    assert found["precision at k = 150"][2:] == ["0.100", "0.000", "the same"]


HOSTILE = [
    "<script>alert(1)</script>",
    "</style></title></svg><img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' & &lt; &amp;",
    "手机壳 透明",
    "سماعات لاسلكية",
    "שולחן (כתיבה)",
    "\u202eabc",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_users_stays_text(tmp_path, text):
    evaluation = example()
    evaluation["examples"][0].update(query=text, stratum=text)
    evaluation["policies"][0].update(title=text, name=text)
    evaluation["curves"][text] = evaluation["curves"].pop("level")
    evaluation["gates"][0].update(title=text, required=text)
    evaluation["previous"]["version"] = text
    evaluation["model"]["loss"] = text
    page = report(evaluation, tmp_path)
    assert not page.all("script")
    assert not page.all("img")
    query = under(page, "examples").all("bdi")[0]
    assert query.text == text
    assert query.attributes == {"dir": "auto"}
    assert text in under(page, "facts").text
    assert text in under(page, "curves").all("svg", role="img")[0].text


def test_text_that_no_file_can_hold_is_replaced(tmp_path):
    evaluation = example()
    evaluation["examples"][0]["query"] = json.loads('"a\\ud800b\\u0000c"')
    assert under(report(evaluation, tmp_path), "examples").all("bdi")[0].text == "a�b�c"


@pytest.mark.parametrize("key", list(example()))
@pytest.mark.parametrize("gone", [True, False])
def test_a_part_may_be_missing(tmp_path, key, gone):
    evaluation = example()
    if gone:
        del evaluation[key]
    else:
        evaluation[key] = None
    assert report(evaluation, tmp_path).one("h1").text


def test_nothing_at_all(tmp_path):
    page = report({}, tmp_path)
    assert page.one("h1").text == "Not blessed."
    assert not page.all("svg")
    assert "Nothing was measured." in under(page, "curves").text


def blank(tree):
    """The same tree, with NaN for every number but the averages compared at."""
    if isinstance(tree, dict):
        return {k: v if k == "average_k" else blank(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [blank(entry) for entry in tree]
    return math.nan if isinstance(tree, int | float) and not isinstance(tree, bool) else tree


def test_no_number_is_shown_as_nan(tmp_path):
    page = report(blank(example()), tmp_path)
    assert "nan" not in page.one("body").text.lower()
    assert under(page, "policies").one("table").rows()[2][1:] == ["–"] * 7
    assert not page.all("svg", role="img")


def test_a_stratum_without_queries(tmp_path):
    evaluation = example()
    evaluation["data"]["strata"]["head"] = 0
    for policy in evaluation["policies"]:
        for k, groups in policy["at"].items():
            groups["head"] = None if k == "50" else {"precision": math.nan}
    evaluation["calibration"]["kept"]["head"] = [math.nan] * 10
    evaluation["calibration"]["error"]["head"] = None
    page = report(evaluation, tmp_path)
    head = under(page, "strata").all("table")[0]
    assert head.rows()[2][1:] == ["–"] * 6
    assert not head.all("b")
    calibration = under(page, "calibration")
    assert calibration.one("table").rows()[1] == ["0.500", "0.507", "–", "0.512", "0.469", "6.1"]
    assert [g.text for g in calibration.all("g", class_="style1 label")] == []
    assert [g.text for g in calibration.all("g", class_="style2 label")] == ["torso"]


def test_a_write_that_fails_leaves_the_old_report(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system itself refuses to write beyond the first kilobytes.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_report(example(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_equal_evaluations_give_equal_reports(tmp_path):
    for name in ("a", "b"):
        write_report(json.loads(json.dumps(example())), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

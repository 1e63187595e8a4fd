"""The report is one safe file with the right numbers."""

import json
import resource
from dataclasses import replace

import pytest
from evaluation_example import example, rejected
from page_reader import read, under

from pebr_tf.metrics.results import Curve
from pebr_tf.report import outcome, write_report


def text_of(evaluation, folder):
    path = folder / "report.html"
    write_report(evaluation, path)
    return path.read_text(encoding="utf-8")


def report(evaluation, tmp_path):
    return read(text_of(evaluation, tmp_path))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return text_of(example(), tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def page(whole):
    return read(whole)


def test_nothing_is_loaded_and_nothing_runs(whole, page):
    assert whole.startswith("<!DOCTYPE html>\n")
    assert not {node.tag for node in page.all()} & {"script", "link", "img", "iframe", "object"}
    for node in page.all():
        assert not any(name == "src" or name.startswith("on") for name in node.attributes)
        assert node.attributes.get("href", "#").startswith("#")
    assert not any(word in whole for word in ("http:", "https:", "url(", "@import"))
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_names_and_heads_for_screen_readers(page):
    identifiers = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(identifiers) == len(set(identifiers))
    for node in page.all():
        for name in node.attributes.get("aria-labelledby", "").split():
            assert name in identifiers
    for link in page.one("nav").all("a"):
        assert link.attributes["href"][1:] in identifiers
    assert all("scope" in head.attributes for head in page.all("th"))
    parts = (chart.children[:2] for chart in page.all("svg", role="img"))
    tags = [[child.tag for child in each if child.text] for each in parts]
    assert tags == [["title", "desc"]] * 4


def test_headline_and_tiles(page, tmp_path):
    other = report(rejected(), tmp_path)
    assert other.one("h1").text == outcome(rejected())
    assert other.one("h1").one("span").attributes["class"] == "bad"
    assert page.one("h1").text == outcome(example())
    tiles = page.one("dl", class_="tiles").children
    assert [[part.text for part in tile.children] for tile in tiles] == [
        ["Recall at k = 150", "0.851", "top_k 0.795, +0.0560"],
        ["Precision at k = 150", "0.100", "top_k 0.0700, +0.0300"],
        ["Calibration error", "0.0041", "worst stratum: tail 0.0182"],
        ["Empty rate", "0.080%", "at recall 0.9"],
        ["Items, median query", "42", "p99 4,120"],
        ["Index recall", "0.994", "against exact search; micro 0.997"],
        ["Latency, p99", "4.21 ms", "batch of 1; median 1.83 ms"],
    ]


def test_policies_with_the_best_marked_and_the_oracle_apart(page):
    table = under(page, "policies").one("table")
    rows = {row[0]: row[1:] for row in table.rows()}
    level = "0.187 0.762 0.100 0.851 0.0350 0.924 0.0%"
    assert rows["level, T = 0.6default"] == level.split()
    assert rows["literal pEBR (CDF)"][2:4] == ["0.138", "0.483"]
    assert rows["literal pEBR (CDF)"][-1] == "9.0%"
    best = [cell.text for cell in table.all("b")]
    assert best == ["0.762", "0.851", "0.924", "0.219", "0.138", "0.115"]
    assert table.one("tr", class_="default").text.startswith("level, T = 0.6")
    apart = table.one("tbody", class_="apart").rows()
    assert apart == [["oracle", "0.402", "0.905", "0.168", "0.948", "0.0520", "0.981", "0.0%"]]


def test_strata_and_the_gain_in_each(page):
    tables = under(page, "strata").all("table")
    captions = [table.one("caption").text for table in tables]
    assert captions[:2] == ["Head: 143 of 2,391 queries", "Torso: 562 of 2,391 queries"]
    # 2.4 times .124 and .688 less .035, as the example makes its head.
    assert ["top k", "0.298", "0.653"] in [row[:3] for row in tables[0].rows()]
    # 0.6 times (.187 - .124), and .762 - .688.
    assert tables[3].rows()[-1][:3] == ["tail", "+0.0378", "+0.0740"]


def test_single_tables(page):
    calibration = under(page, "calibration").one("table")
    served = ["0.900", "0.903", "0.912", "0.906", "0.884", "302"]
    assert served in calibration.rows()
    assert calibration.one("tr", class_="default").one("th").text == "0.900"
    assert calibration.rows()[-1] == ["mean error", "0.0041", "0.0136", "0.0071", "0.0182", ""]
    budget = [["50", "51.2", "+2.4%"], ["150", "148", "−1.5%"]]
    assert under(page, "budget").one("table").rows()[1:3] == budget
    gates = under(page, "gates").one("table").rows()
    passed = ["≥ 0.00", "0.429", "2,391 queries", "✓ passed"]
    assert gates[1] == ["gain in precision over top_k", *passed]
    examples = under(page, "examples").one("table").rows()
    assert examples[1] == ["huawei phone", "head", "1,873", "412", "398", "0.413"]
    assert len(examples) == 4
    unseen = under(page, "unseen").one("table").rows()
    # .851 less .031.
    assert [row[4] for row in unseen if row[0].startswith("level, T")] == ["0.820"]


def test_comparison_with_the_previous_release_and_with_the_expected_recall(page, tmp_path):
    evaluation = example()
    previous = evaluation.previous
    # Rounds to nothing, though not equal.
    index = replace(previous.index, recall_macro=previous.index.recall_macro + 0.0004)
    overall = previous.default_knob.groups["overall"]
    previous.default_knob.groups["overall"] = replace(overall, p99=4620)
    del previous.calibration.error["head"], previous.policies[0].at[500]
    evaluation = replace(evaluation, previous=replace(previous, index=index))
    evaluation.calibration.expected["overall"][-1] = 0.931
    other = report(evaluation, tmp_path)
    rows = under(other, "previous").one("table").rows()
    assert rows[0][1] == "release 1731"
    found = {row[0]: row[1:] for row in rows}
    assert found["recall at k = 150"] == ["0.838", "0.851", "+0.0130", "better"]
    assert found["precision at k = 150"] == ["0.104", "0.100", "−0.0040", "worse"]
    assert found["recall at k = 500"] == ["–", "0.924", "–", "–"]
    assert found["calibration error"] == ["0.0093", "0.0041", "−0.0052", "better"]
    assert found["calibration error, head"] == ["–", "0.0136", "–", "–"]
    assert found["index recall"][2:] == ["0.000", "the same"]
    assert found["items per query, p99"] == ["4,620", "4,120", "−500", "fewer"]
    assert found["latency, p99"][2:] == ["+0.31 ms", "worse"]
    # The expected recall is shown where it is not the requested one.
    assert under(page, "calibration").one("table").rows()[0][:2] == ["requested", "overall"]
    rows = under(other, "calibration").one("table").rows()
    assert rows[0][:3] == ["requested", "expected", "overall"]
    assert rows[-2][:3] == ["0.950", "0.931", "0.952"]
    assert rows[-1][:3] == ["mean error", "", "0.0041"]


HOSTILE = [
    "<script>alert(1)</script>",
    "</style></title></svg><img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' & &lt; &amp;",
    "手机壳 透明",
    "سماعات لاسلكية",
    "שולחן (כתיבה)",
    "\u202eabc",
]


@pytest.mark.filterwarnings("ignore:Glyph")
def test_text_of_users_stays_text_or_is_replaced(tmp_path):
    text = " ".join(HOSTILE)
    evaluation = example()
    evaluation.examples[0] = replace(evaluation.examples[0], query=text, stratum=text)
    # No file can hold it.
    broken = json.loads('"a\\ud800b\\u0000c"')
    evaluation.examples[1] = replace(evaluation.examples[1], query=broken)
    evaluation.policies[0] = replace(evaluation.policies[0], title=text, name=text)
    evaluation.gates[0] = replace(evaluation.gates[0], title=text)
    evaluation = replace(evaluation, model=replace(evaluation.model, loss=text))
    page = report(evaluation, tmp_path)
    assert not page.all("script")
    assert not page.all("img")
    query, repaired = under(page, "examples").all("bdi")[:2]
    assert repaired.text == "a�b�c"
    assert query.text == text
    assert query.attributes == {"dir": "auto"}
    assert text in under(page, "facts").text
    assert text in under(page, "curves").all("svg", role="img")[0].text


def test_a_stratum_without_queries_no_unseen_pairs_and_empty_lists(tmp_path):
    """An empty list has no place on a logarithmic axis; without a query of 0 items, no bar."""
    evaluation = replace(example(), unseen=[])
    curve = Curve([0.0, 2.0], [0.0, 0.5], [0.0, 0.1])
    evaluation.policies[1] = replace(evaluation.policies[1], curve=curve)
    overall = evaluation.default_knob.groups["overall"]
    evaluation.default_knob.groups["overall"] = replace(overall, p50=0)
    evaluation.data.strata["head"] = 0
    for policy in evaluation.policies:
        for groups in policy.at.values():
            del groups["head"]
    found = evaluation.calibration
    for by_group in (found.expected, found.measured, found.error, evaluation.default_knob.groups):
        del by_group["head"]
    page = report(evaluation, tmp_path)
    head = under(page, "strata").all("table")[0]
    assert head.rows()[2][1:] == ["–"] * 6
    assert not head.all("b")
    calibration = under(page, "calibration")
    assert calibration.one("table").rows()[1] == ["0.500", "0.507", "–", "0.512", "0.469", "6.1"]
    labels = [label.text for label in calibration.one("svg").all("text")]
    assert "torso" in labels
    assert "head" not in labels
    assert under(page, "counts").one("table").rows()[2] == ["head", *["–"] * 7]
    assert "Nothing was measured." in under(page, "unseen").text
    assert "median 0" in under(page, "counts").one("svg").text


def test_a_write_that_fails_leaves_the_old_report(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system itself does not write beyond the first kilobytes.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_report(example(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]

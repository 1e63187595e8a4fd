"""The page: one file, nothing loaded, nothing that runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from experiments.page import page
from experiments.plots import drawn, literal, look
from experiments.results import ExperimentResults, Plot, ResultTable

QUERY = '<script>alert("x")</script> & \'id="a\' url(#b) **'


class Reader(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes = set(), []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


def draw(figure):
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4], label=literal(QUERY), **look("level").line())
    axes.scatter([1, 2], [3, 4], rasterized=True)
    axes.legend()


@pytest.fixture(scope="module")
def content():
    plots = tuple(Plot(name, f"Plot {name}", QUERY, draw, (4, 3)) for name in ("one", "two"))
    tables = (
        ResultTable(
            f"Table {QUERY}", ("query", "items"), ((QUERY, "**12**"), ("b", QUERY)), "A note."
        ),
        ResultTable("Second", ("a", "b"), ()),
    )
    results = ExperimentResults(
        f"Title {QUERY}", ("**Found** & more.", "Second."), {}, tables, plots
    )
    return page(results, {plot.name: drawn(plot)["svg"].decode() for plot in plots})


def test_nothing_is_loaded_and_nothing_runs(content):
    reader = Reader(content)
    assert not reader.tags & {"script", "link", "iframe", "object", "base", "form", "img"}
    links = [value for name, value in reader.attributes if name in ("href", "src", "xlink:href")]
    assert links
    for link in links:
        assert link.startswith(("#", "data:image/png;base64,")), link
    assert not re.search(r"url\((?!#)", content.replace("url(#b)", ""))
    assert "http" not in content.replace("http-equiv", "")
    assert "@import" not in content
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    (policy,) = (
        value for name, value in reader.attributes if name == "content" and "default-src" in value
    )
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

"""The page: one file, nothing loaded, nothing that runs, every text as it is."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from experiments.page import inlined, page
from experiments.plots import drawn, literal, look
from experiments.results import ExperimentResults, Plot, ResultTable

QUERY = '<script>alert("x")</script> & \'id="a\' url(#b) **'


class Reader(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts = Counter(), [], []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, name):
        return [value for key, value in self.attributes if key == name]


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
    assert not set(reader.tags) & {"script", "link", "iframe", "object", "base", "form", "img"}
    links = [value for name, value in reader.attributes if name in ("href", "src", "xlink:href")]
    assert links
    for link in links:
        assert link.startswith(("#", "data:image/png;base64,")), link
    assert not re.search(r"url\((?!#)", content.replace("url(#b)", ""))
    assert "http" not in content.replace("http-equiv", "")
    assert "@import" not in content
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    (policy,) = (value for value in reader.of("content") if "default-src" in value)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_ids_are_unique_and_texts_are_shown_as_they_are(content):
    reader = Reader(content)
    ids = reader.of("id")
    assert len(ids) == len(set(ids))
    references = [link[1:] for link in reader.of("href") if link.startswith("#")]
    assert {"plot-one", "plot-two", "table-1", "table-2"} <= set(references) <= set(ids)
    assert any(name.startswith("one-") for name in references)
    # Two cells, and the caption and the legend of each plot.
    assert reader.texts.count(QUERY) == 2 + 2 + 2
    assert reader.of("aria-label").count(QUERY) == 2


SVG = (
    '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x" "http://y">\n'
    '<svg width="9pt" viewBox="0 0 90.5 20" xmlns="http://z">\n<metadata>m</metadata>'
    '<defs><style type="text/css">*{}</style></defs>'
    '<g id="a"><use xlink:href="#b" clip-path="url(#c)"/><text>id="d" url(#e)</text></g>\n</svg>\n'
)


def test_a_drawing_gets_ids_of_its_own_and_keeps_its_texts():
    assert inlined(SVG, "p", 'A "label"') == (
        '<svg viewBox="0 0 90.5 20" role="img" aria-label="A &#34;label&#34;" '
        'style="max-width: 90.5pt">\n<defs></defs>'
        '<g id="p-a"><use href="#p-b" clip-path="url(#p-c)"/><text>id="d" url(#e)</text></g>\n'
        "</svg>"
    )
    for svg in ("<p>no</p>", "", '<svg width="3"></svg>'):
        message = rf"^a drawing must be an SVG with a viewBox\. Received: {re.escape(repr(svg))}\.$"
        with pytest.raises(ValueError, match=message):
            inlined(svg, "p", "label")

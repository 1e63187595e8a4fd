"""An experiment as one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

from experiments.markdown import pieces
from experiments.markup import Markup, element, heads, joined, row, section, table
from experiments.results import Plot, Results, Table

# Nothing is loaded and nothing runs; points that are drawn as a picture stand in the file.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Plots are drawn dark on white, so they keep a light card when the page is dark.
_STYLE = """
.card { background: #fff; border: 1px solid var(--rule); border-radius: 6px; padding: 0.75rem; }
.card svg { display: block; width: 100%; min-width: 36rem; height: auto; margin: 0 auto; }
.card svg * { stroke-linejoin: round; stroke-linecap: butt; }
figure.plot figcaption { max-width: 46em; margin: 0.6rem 0 0; font-weight: 400; }
figure.plot figcaption { color: var(--muted); text-wrap: pretty; }
main .note { margin-top: 0.6rem; }
"""
_PROLOGUE = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_OPENING = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_BOX = re.compile(r'viewBox="([^"]*)"')
_HIDDEN = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.DOTALL)
# Texts of a drawing have no angle brackets but as entities.
_TAG = re.compile(r"<[^>]*>")
_REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')


def page(results: Results, drawings: Mapping[str, str]) -> str:
    """The page.

    Args:
      results: What it shows.
      drawings: SVG of each plot, by its name.
    """
    sections = [
        *((f"plot-{plot.name}", plot.title, _figure(plot, drawings[plot.name]))
          for plot in results.plots),
        *((f"table-{place}", table.title, _table(table))
          for place, table in enumerate(results.tables, 1)),
    ]  # fmt: skip
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("title", _plain(results.title)),
        element("style", Markup(_report_style() + _STYLE)),
    )
    header = element(
        "header",
        element("p", "Experiment", class_="eyebrow"),
        element("h1", _inline(results.title)),
        *(element("p", _inline(paragraph), class_="deck") for paragraph in results.summary),
        element(
            "nav",
            *(element("a", _plain(title), href=f"#{name}") for name, title, _ in sections),
            aria_label="Sections",
        ),
    )
    main = element(
        "main", *(section(name, _plain(title), content) for name, title, content in sections)
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', header, main), lang='en')}\n"


def inlined(svg: str, prefix: str, label: str) -> Markup:
    """An SVG file as part of a page that has others.

    Args:
      svg: The file.
      prefix: Of its ids, which two drawings may share.
      label: What those hear who cannot see it.
    """
    svg = _HIDDEN.sub("", _PROLOGUE.sub("", svg, count=1))
    opening = _OPENING.match(svg)
    box = _BOX.search(opening[0]) if opening else None
    if opening is None or box is None:
        raise ValueError(f"a drawing must be an SVG with a viewBox. Received: {svg[:60]!r}.")
    inside = svg[opening.end() : svg.rindex("</svg>")]
    inside = _TAG.sub(
        lambda tag: _REFERENCE.sub(rf"\g<1>{prefix}-", tag[0]).replace("xlink:href", "href"),
        inside,
    )
    width = float(box[1].split()[2])
    return element(
        "svg",
        Markup(inside),
        viewBox=box[1],
        role="img",
        aria_label=label,
        style=f"max-width: {width:g}pt",
    )


def _report_style() -> str:
    return resources.files("pebr_tf.report").joinpath("report.css").read_text(encoding="utf-8")


def _figure(plot: Plot, svg: str) -> Markup:
    card = element(
        "div",
        inlined(svg, plot.name, _plain(plot.caption)),
        class_="card scroll",
        tabindex="0",
        role="region",
        aria_label=_plain(plot.title),
    )
    return element("figure", card, element("figcaption", _inline(plot.caption)), class_="plot")


def _table(content: Table) -> Markup:
    rows = [
        row(_inline(first), *(_inline(cell) for cell in cells)) for first, *cells in content.rows
    ]
    head = heads(*(_inline(text) for text in content.head))
    note = element("p", _inline(content.note), class_="note") if content.note else None
    return joined([table(head, rows, _plain(content.title)), note])


def _inline(text: str) -> Markup:
    return joined(element("b", part) if bold else part for part, bold in pieces(text))


def _plain(text: str) -> str:
    return "".join(part for part, _ in pieces(text))

"""An experiment as one HTML file that needs nothing else."""

import re
from collections.abc import Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

import pebr_tf.report
from experiments.markdown import pieces
from experiments.results import ExperimentResults
from pebr_tf.report.page import printable

_PROLOGUE = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_OPENING = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_BOX = re.compile(r'viewBox="([^"]*)"')
_HIDDEN = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.DOTALL)
# Angle brackets in the texts of a drawing are entities.
_TAG = re.compile(r"<[^>]*>")
_REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')


def page(results: ExperimentResults, drawings: Mapping[str, str]) -> str:
    """Returns the page.

    Args:
      results: The content.
      drawings: SVG of each plot, by its name.
    """
    folders = [Path(__file__).parent, Path(pebr_tf.report.__file__).parent]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(inline=_inline, plain=_plain)
    template = environment.get_template("page.html")
    return template.render(results=results, drawings=drawings, inlined=inlined) + "\n"


def inlined(svg: str, prefix: str, label: str) -> Markup:
    """Returns an SVG file as part of a page that has others.

    Args:
      svg: The file.
      prefix: Prefix of its ids, because two drawings may use the same ids.
      label: The text for screen readers.
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
    opening_tag = Markup('<svg viewBox="{}" role="img" aria-label="{}" style="max-width: {}pt">')
    return opening_tag.format(box[1], printable(label), f"{width:g}") + Markup(f"{inside}</svg>")


def _inline(text: str) -> Markup:
    return Markup("").join(
        Markup("<b>{}</b>").format(printable(part)) if bold else escape(printable(part))
        for part, bold in pieces(text)
    )


def _plain(text: str) -> str:
    return "".join(part for part, _ in pieces(text))

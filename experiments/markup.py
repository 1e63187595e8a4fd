"""HTML from Python. Text is escaped; `Markup` is used as it is."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

# What HTML forbids even as a character reference, and halves of a pair, which no file can hold.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_WITHOUT_END = {"meta", "br"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """`text` as HTML that shows it; markup stays as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(_UNPRINTABLE.sub("�", text)))


def joined(children: Iterable[str | None]) -> Markup:
    """The children in a row; None is nothing."""
    return Markup("".join(escaped(child) for child in children if child is not None))


def element(tag: str, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """`<tag attributes>children</tag>`.

    Args:
      tag: Name.
      *children: Text, which is escaped, or markup; None is nothing.
      **attributes: `class_` is class, `stroke_dasharray` is stroke-dasharray. True is a bare name,
        None and False leave it out.
    """
    opening = tag
    for name, value in attributes.items():
        name = name.rstrip("_").replace("_", "-")
        if value is True:
            opening += f" {name}"
        elif value is not None and value is not False:
            text = f"{value:.7g}" if isinstance(value, float) else str(value)
            opening += f' {name}="{escaped(text)}"'
    if tag in _WITHOUT_END:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{joined(children)}</{tag}>")


def table(head: Markup, body: Iterable[Markup], label: str) -> Markup:
    """A table in a box that scrolls on narrow pages.

    Args:
      head: The row of column heads.
      body: The other rows.
      label: Accessible name of the box.
    """
    return element(
        "div",
        element("table", element("thead", head), element("tbody", joined(body)), class_="named"),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=label,
    )


def heads(first: str, *others: str) -> Markup:
    """A row of column heads; the first column has words, the others numbers."""
    numbers = (element("th", text, scope="col", class_="number") for text in others)
    return element("tr", element("th", first, scope="col"), *numbers)


def row(head: str, *cells: str) -> Markup:
    """A row of a table: its head, then numbers."""
    numbers = (element("td", cell, class_="number") for cell in cells)
    return element("tr", element("th", head, scope="row"), *numbers)


def section(identifier: str, title: str, content: Markup) -> Markup:
    """A part of the page under its heading."""
    heading = element("h2", title, id=identifier)
    return element("section", heading, content, aria_labelledby=identifier)

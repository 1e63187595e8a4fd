"""HTML and SVG from Python, escaped unless it says that it is markup."""

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


def table(
    caption: str | None,
    head: Iterable[Markup],
    body: Iterable[Markup],
    label: str,
    class_: str | None = None,
) -> Markup:
    """A table in a box of its own, which scrolls where the page is narrow; a note if it is empty.

    Args:
      caption: Above the table, shown; None for none.
      head: Rows of the head.
      body: Rows, or whole `tbody` elements.
      label: What the box is called, for those who hear the page.
      class_: Of the table.
    """
    rows = joined(body)
    if not rows:
        return nothing()
    return element(
        "div",
        element(
            "table",
            element("caption", caption) if caption else None,
            element("thead", *head),
            rows if rows.startswith("<tbody") else element("tbody", rows),
            class_=class_,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=label,
    )


def nothing() -> Markup:
    """What stands where a table or a chart would be empty."""
    return element("p", "Nothing was measured.", class_="note")


def heads(*texts: str, words: int = 1) -> Markup:
    """A row of column heads; the first `words` stand above words, the others above numbers."""
    return element(
        "tr",
        *(
            element("th", text, scope="col", class_=None if place < words else "number")
            for place, text in enumerate(texts)
        ),
    )


def row(head: str, *cells: str, class_: str | None = None) -> Markup:
    """A row of a table: its head, then numbers; a cell that is a `td` already stays."""
    return element(
        "tr",
        element("th", head, scope="row"),
        *(
            cell
            if isinstance(cell, Markup) and cell.startswith("<td")
            else element("td", cell, class_="number")
            for cell in cells
        ),
        class_=class_,
    )


def section(identifier: str, title: str, note: str | None, *children: str | None) -> Markup:
    """A part of the page under its heading."""
    return element(
        "section",
        element("h2", title, id=identifier),
        element("p", note, class_="note") if note else None,
        *children,
        aria_labelledby=identifier,
    )

"""Reads a page back: a strict parser that rejects what a browser would silently repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self):
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, tag=None, **attributes):
        """Elements in it, in order; attributes as in `class_="tiles"`."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        found = []
        for child in self.children:
            if isinstance(child, Node):
                if tag in (None, child.tag) and wanted.items() <= child.attributes.items():
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def one(self, tag=None, **attributes):
        (found,) = self.all(tag, **attributes)
        return found

    def rows(self):
        return [[c.text for c in row.children if isinstance(c, Node)] for row in self.all("tr")]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = Node("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        assert any(node.tag == "svg" for node in self.open), f"<{tag}/> has no meaning in HTML"
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag

    def handle_data(self, data):
        if data.strip():
            self.open[-1].children.append(data)


def read(page):
    """The `html` element of a page whose elements are all closed in order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root.one("html")


def under(page, heading):
    return page.one("section", aria_labelledby=heading)

"""Markdown that a parser reads back as the text that was written."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from experiments.markdown import markdown
from experiments.results import ExperimentResults, Plot, ResultTable

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NASTY = [
    "<script>alert('x')</script> a|b \\| c\\ 100% ≥ 5 < 7 > 3 手机 é",
    "snake_case stays, _not_ emphasis, __init__ neither, a__b__c nor a_ or _",
    "*stars* and * alone, `code` and ``more``, ~~gone~~ and ~home, $x$ costs $5",
    "[link](http://x) and ![image](y) and [ref] &amp; &lt; &#65; & Co; R&D",
    # What begins a block.
    *("# no heading", "> no quotation", "- no list", "+ no list", "-", "--- no rule", "---"),
    *("1. no list", "1) no list", "12", "-0.5 and 3.5 items", "    no code"),
    "two\n\nparagraphs\nin one",
]


def results_of(text: str) -> ExperimentResults:
    table = ResultTable(text, ("words", text), ((text, "1"), (text, text)), text)
    plot = Plot("plot-1", text, text, lambda figure: None)
    return ExperimentResults(text, (text, "second"), {}, (table,), (plot,))


def texts(tokens, opening: str) -> list[str]:
    """What a reader sees in each element of a kind."""
    return [
        "".join(child.content for child in tokens[place + 1].children)
        for place, token in enumerate(tokens)
        if token.type == opening
    ]


@pytest.mark.parametrize("text", NASTY)
def test_every_text_is_shown_as_it_is(text):
    tokens = PARSER.parse(markdown(results_of(text)))
    shown = " ".join(text.split())
    assert texts(tokens, "heading_open") == [shown] * 3
    (image,) = (
        child for token in tokens for child in token.children or () if child.type == "image"
    )
    assert image.attrs["src"] == "plot-1.png"
    assert "".join(child.content for child in image.children) == shown
    paragraphs = texts(tokens, "paragraph_open")
    assert paragraphs == [shown, "second", shown, image.content, shown]
    assert texts(tokens, "th_open") == ["words", shown]
    assert texts(tokens, "td_open") == [shown, "1", shown, shown]
    assert {child.type for token in tokens for child in token.children or ()} == {"text", "image"}

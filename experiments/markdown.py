"""Tables and summary of an experiment as Markdown."""

import re
from collections.abc import Iterator

from experiments.results import ExperimentResults, Plot, ResultTable

_BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
_ENTITY = re.compile(r"&(?=#?\w+;)")
# An underscore between letters or digits is one; elsewhere it may begin or end an emphasis.
_SPECIAL = re.compile(r"([\\`*\[\]|~$])|(?<![^\W_])(_)|(_)(?![^\W_])")
# What would make a heading, a quotation, a list or a rule of a paragraph.
_BEGINNING = re.compile(r"^(\d*)([#>]|[-+](?=[\s-]|$)|(?<=\d)[.)](?=\s|$))")


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Parts of a text, each with whether it is bold, which `**x**` stands for."""
    end = 0
    for match in _BOLD.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match[1], True
        end = match.end()
    if end < len(text):
        yield text[end:], False


def markdown(results: ExperimentResults) -> str:
    """The document: title, summary, tables, and the plots with their captions."""
    parts = [f"# {_text(results.title)}"]
    parts += [_text(paragraph) for paragraph in results.summary]
    parts += [_table(table) for table in results.tables]
    parts += [_plot(plot) for plot in results.plots]
    return "\n\n".join(parts) + "\n"


def _table(table: ResultTable) -> str:
    lines = [f"## {_text(table.title)}", ""]
    lines += [_line([_text(cell) for cell in table.head])]
    lines += [_line(["---"] + ["---:"] * (len(table.head) - 1))]
    lines += [_line([_text(cell) for cell in row]) for row in table.rows]
    if table.note:
        lines += ["", _text(table.note)]
    return "\n".join(lines)


def _plot(plot: Plot) -> str:
    caption = _text(plot.caption)
    return f"## {_text(plot.title)}\n\n![{caption}]({plot.name}.png)\n\n{caption}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """The text on one line, so that Markdown shows it as it is, but for what is bold."""
    whole = " ".join(text.split())
    return "".join(
        f"**{_escaped(part)}**" if bold else _escaped(part) for part, bold in pieces(whole)
    )


def _escaped(text: str) -> str:
    text = _ENTITY.sub("&amp;", text).replace("<", "&lt;")
    text = _SPECIAL.sub(r"\\\1\2\3", text)
    return _BEGINNING.sub(r"\1\\\2", text)

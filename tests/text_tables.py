"""Tables of rejected input: a line, and indented below it the sentence that rejects it."""

import re


def blocks(text):
    """The entries of a table, each with the lines that are indented below it."""
    return re.split(r"\n(?! )", text.strip())


def cases(text):
    """Pairs of a line and its sentence."""
    for block in blocks(text):
        line, *sentence = map(str.strip, block.splitlines())
        yield line, " ".join(sentence)

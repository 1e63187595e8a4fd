"""Errors that are the user's to fix: one sentence, no traceback, exit code 2."""


class UserError(Exception):
    """What is required, then what was received, in one sentence."""


def one_line(text: object) -> str:
    """A text for the end of an error: one line without a full stop."""
    return " ".join(str(text).split()).rstrip(".")

"""Errors that are the user's to fix: one sentence, no traceback, exit code 2."""


class UserError(Exception):
    """What is required, then what was received, in one sentence."""

"""Who may call: bearer tokens, compared in constant time."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from pathlib import Path

from pebr_tf.errors import UserError
from serving.errors import Unauthenticated

_TOKEN = re.compile(r"[!-~]+")


class Access:
    """Accepts calls that carry one of the tokens; all calls where there are none."""

    def __init__(self, tokens: Sequence[str] = ()):
        """Takes the accepted tokens; they are kept as digests only."""
        self._digests = [_digest(token.encode()) for token in tokens]

    @classmethod
    def from_file(cls, path: str | None) -> Access:
        """Reads a file of tokens, one a line; empty lines and those that begin with # are skipped.

        Args:
          path: None asks for no token.

        Raises:
          UserError: The file cannot be read, holds no token, or one with a space or a character
            that a header cannot carry. No token is in the text.
        """
        if path is None:
            return cls()
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise UserError(
                f"serving.token_file must be a readable file. Received: {path} ({reason})."
            ) from None
        tokens = []
        for number, line in enumerate(lines, start=1):
            token = line.strip()
            if not token or token.startswith("#"):
                continue
            if not _TOKEN.fullmatch(token):
                raise UserError(
                    "serving.token_file must hold one token a line, of printable ASCII without "
                    f"spaces. Received: something else in line {number} of {path}."
                )
            tokens.append(token)
        if not tokens:
            raise UserError(f"serving.token_file must hold a token. Received: none in {path}.")
        return cls(tokens)

    @property
    def required(self) -> bool:
        """Whether a call needs a token."""
        return bool(self._digests)

    def check(self, authorization: str | None) -> None:
        """Accepts or refuses a call by its `authorization`.

        Besides `Bearer TOKEN`, `Basic` with the token as password is accepted (any user name),
        so that a browser can ask a person for it.

        Raises:
          Unauthenticated: There is none, or it is not accepted.
        """
        if not self._digests:
            return
        if not authorization:
            raise Unauthenticated("authorization must be Bearer and a token. Received: nothing.")
        digest = _digest(_token(authorization))
        accepted = False
        # Over digests of equal length and over all tokens: time tells nothing of either.
        for known in self._digests:
            accepted |= hmac.compare_digest(known, digest)
        if not accepted:
            raise Unauthenticated(
                "authorization must be Bearer and an accepted token. Received: another."
            )


def _token(authorization: str) -> bytes:
    """The token in the value of a header; empty, which no token is, where there is none."""
    scheme, _, value = authorization.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value.encode("utf-8", "replace")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()

"""Access by bearer tokens, compared in constant time."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from pathlib import Path

from pebr_tf.errors import UserError
from serving.errors import AuthenticationError

_TOKEN = re.compile(r"[!-~]+")


class Access:
    """Accepts requests that carry one of the tokens; all requests if there are no tokens."""

    def __init__(self, tokens: Sequence[str] = ()):
        self._digests = [_digest(token.encode()) for token in tokens]
        self.required = bool(tokens)

    @classmethod
    def from_file(cls, path: str | None) -> Access:
        """Reads a file with one token per line; skips empty lines and lines that begin with #.

        Raises:
          UserError: The file cannot be read, holds no token, or one with a space or a character
            that a header cannot carry. The message contains no token.
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
                    "serving.token_file must hold one token per line, of printable ASCII without "
                    f"spaces. Received: something else in line {number} of {path}."
                )
            tokens.append(token)
        if not tokens:
            raise UserError(f"serving.token_file must hold a token. Received: none in {path}.")
        return cls(tokens)

    def check(self, authorization: str | None) -> None:
        """Checks the `authorization` header of a request.

        Besides `Bearer TOKEN`, `Basic` with the token as password and any user name is accepted,
        so that a browser can ask for it.

        Raises:
          AuthenticationError: There is no token, or it is not accepted.
        """
        if not self.required:
            return
        if not authorization:
            raise AuthenticationError(
                "authorization must be Bearer and a token. Received: nothing."
            )
        digest = _digest(_token(authorization))
        accepted = False
        # Digests have equal length and all tokens are compared, so the time reveals nothing.
        for known in self._digests:
            accepted |= hmac.compare_digest(known, digest)
        if not accepted:
            raise AuthenticationError(
                "authorization must be Bearer and an accepted token. Received: another."
            )


def _token(authorization: str) -> bytes:
    """Returns the token in a header; empty, which is never accepted, if there is none."""
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

"""What both clients share: address, encryption, token, channel options and retries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from serving.client.errors import REQUEST_ID, Overloaded, Unavailable, retrieval_error
from serving.retries import Attempts, RetryBudget

# Seconds before the first retry, doubled for each further one.
FIRST_PAUSE = 0.025
CHANNEL_OPTIONS = (
    # Long lists of many queries; gRPC's default is 4 MB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Notices a connection that a firewall has dropped before the next call.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # Spreads calls over all servers behind one name.
    ("grpc.lb_policy_name", "round_robin"),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files for an encrypted connection.

    Attributes:
      authority: The authority of the server's certificate; None for those that the system trusts.
      certificate: The client's own certificate, for servers that require one.
      key: Key of the certificate.
      server_name: Name in the server's certificate, if it differs from the address.
    """

    authority: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError(
                "certificate and key must be given together. "
                f"Received: {self.certificate!r} and {self.key!r}."
            )

    def credentials(self) -> grpc.ChannelCredentials:
        """Reads the files; raises OSError if that fails."""
        contents = (
            None if path is None else Path(path).read_bytes()
            for path in (self.authority, self.key, self.certificate)
        )
        return grpc.ssl_channel_credentials(*contents)


@dataclass(frozen=True)
class Connection:
    """How to reach a server; the attributes are the arguments of `RetrievalClient`."""

    address: str
    token: str | None
    tls: TlsFiles | None
    timeout: float
    retries: int
    budget: RetryBudget = field(default_factory=RetryBudget)

    def __post_init__(self) -> None:
        if not isinstance(self.address, str) or not self.address.strip():
            raise ValueError(f"address must be host:port. Received: {self.address!r}.")
        printable = self.token is None or (self.token.isascii() and self.token.isprintable())
        # The message must not contain the token.
        if not printable or self.token == "" or " " in (self.token or ""):
            raise ValueError("token must be printable ASCII without spaces.")
        self.seconds(self.timeout)
        if self.retries < 0:
            raise ValueError(f"retries must be at least 0. Received: {self.retries!r}.")

    def options(self) -> tuple[tuple[str, int | str], ...]:
        if self.tls is None or self.tls.server_name is None:
            return CHANNEL_OPTIONS
        return (*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", self.tls.server_name))

    def metadata(self, request_id: str | None = None) -> tuple[tuple[str, str], ...]:
        pairs = {"authorization": self.token and f"Bearer {self.token}", REQUEST_ID: request_id}
        return tuple((name, value) for name, value in pairs.items() if value is not None)

    def seconds(self, timeout: float | None) -> float:
        """Returns the timeout of a call, by default the client's."""
        if timeout is None:
            return self.timeout
        if not 0 < timeout < math.inf:
            raise ValueError(f"timeout must be a number of seconds above 0. Received: {timeout!r}.")
        return timeout

    def begin(self, timeout: float | None) -> CallAttempts:
        return CallAttempts(self.seconds(timeout), self.retries, self.budget, FIRST_PAUSE)


class CallAttempts(Attempts):
    """The attempts of one call of the client.

    Two statuses are worth another attempt: UNAVAILABLE, because another connection or server may
    respond, and RESOURCE_EXHAUSTED, once, because each retry adds to the load. Retrieval writes
    nothing, so it can safely be repeated.
    """

    _was_overloaded = False

    def pause_after(self, error: grpc.RpcError) -> float:
        """Returns the seconds to wait before the next attempt.

        Raises:
          RetrievalError: There is no other attempt.
        """
        failure = retrieval_error(error)
        is_overloaded = isinstance(failure, Overloaded)
        may_succeed = isinstance(failure, Unavailable) or (
            is_overloaded and not self._was_overloaded
        )
        self._was_overloaded |= is_overloaded
        pause = self.pause() if may_succeed else None
        if pause is None:
            raise failure from error
        return pause

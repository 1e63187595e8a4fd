"""What both clients connect with: address, encryption, token, and the settings of the channel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import grpc

from serving.client.errors import REQUEST_ID

# Connections are shared by calls and live long, and the first failure must not cost a second.
CHANNEL_OPTIONS = (
    # Long lists of many queries; gRPC's own limit is 4 MB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # So that a connection that a firewall has dropped is noticed before the next call.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # A name that stands for several servers: each gets its share.
    ("grpc.lb_policy_name", "round_robin"),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files for an encrypted connection.

    Attributes:
      authority: Who signs the server's certificate; None: those that the system trusts.
      certificate: The client's own, for servers that ask for one.
      key: Of the certificate.
      server_name: What the server's certificate is for, where that is not its address.
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
        """Reads the files.

        Raises:
          OSError: A file cannot be read.
        """
        contents = (
            None if path is None else Path(path).read_bytes()
            for path in (self.authority, self.key, self.certificate)
        )
        return grpc.ssl_channel_credentials(*contents)


@dataclass(frozen=True)
class Connection:
    """How to reach a server.

    Attributes:
      address: host:port, or any name that gRPC resolves, such as dns:///name:port.
      token: Bearer token, or None.
      tls: Files, or None for a connection in the clear.
      timeout: Seconds for a call, all tries together.
      retries: Tries after a failed one.
    """

    address: str
    token: str | None
    tls: TlsFiles | None
    timeout: float
    retries: int

    def __post_init__(self) -> None:
        if not isinstance(self.address, str) or not self.address.strip():
            raise ValueError(f"address must be host:port. Received: {self.address!r}.")
        printable = self.token is None or (self.token.isascii() and self.token.isprintable())
        # The token itself stays out of logs.
        if not printable or self.token == "" or " " in (self.token or ""):
            raise ValueError("token must be printable ASCII without spaces.")
        check_timeout(self.timeout)
        if self.retries < 0:
            raise ValueError(f"retries must be at least 0. Received: {self.retries!r}.")

    def options(self) -> tuple[tuple[str, int | str], ...]:
        """Settings of the channel."""
        if self.tls is None or self.tls.server_name is None:
            return CHANNEL_OPTIONS
        return (*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", self.tls.server_name))

    def metadata(self, request_id: str | None = None) -> tuple[tuple[str, str], ...]:
        """What goes with a call."""
        pairs = {"authorization": self.token and f"Bearer {self.token}", REQUEST_ID: request_id}
        return tuple((name, value) for name, value in pairs.items() if value is not None)


def check_timeout(timeout: float) -> float:
    """`timeout` itself, if it is a number of seconds above 0."""
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout must be a number of seconds above 0. Received: {timeout!r}.")
    return timeout

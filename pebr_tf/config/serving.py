"""Settings of the retrieval service."""

from typing import Literal

from pebr_tf.config.section import Section
from pebr_tf.config.setting import setting

# The longest time that a request may allow.
LONGEST_DEADLINE_MILLISECONDS = 600_000
_DEADLINE = f"[1, {LONGEST_DEADLINE_MILLISECONDS}]"


class TfServing(Section):
    """The TF Serving that encodes queries, when it is the backend."""

    address: str | None = setting(
        None,
        "host:port of its gRPC service",
        pattern=r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}",
        form="host:port",
    )
    model: str = setting("pebr_query", "Name of the model there")
    deadline_milliseconds: int = setting(
        200, "Time limit of an encoding, including retries", _DEADLINE
    )
    retries: int = setting(2, "Retries after a failed call", "[0, 10]")


class Batching(Section):
    """How concurrent requests share one encoding and one search."""

    max_size: int = setting(64, "Most queries per batch", "[1, 65_536]")
    max_delay_milliseconds: float = setting(
        10.0, "Longest wait of a busy service for a larger batch", "[0, 1_000]"
    )
    queue_limit: int = setting(
        1_024, "Waiting queries beyond which requests are rejected", "[1, 1_000_000]"
    )

    def check(self) -> None:
        self.require(
            self.max_size <= self.queue_limit,
            "max_size",
            f"be at most queue_limit ({self.queue_limit})",
        )


class Cache(Section):
    """What each worker keeps of earlier requests; popular queries come again."""

    queries: int = setting(10_000, "Encoded queries that are kept; 0: none", "[0, 100_000_000]")
    responses: int = setting(
        1_000, "Whole responses of at most 1,000 items that are kept; 0: none", "[0, 100_000_000]"
    )


class Limits(Section):
    """What one request may ask for; `cutoff.limit` bounds the results of a query."""

    request_bytes: int = setting(1_048_576, "Most bytes per request", "[1_024, 1_073_741_824]")
    queries_per_call: int = setting(256, "Most queries per request", "[1, 65_536]")
    query_characters: int = setting(512, "Most characters per query", "[1, 1_048_576]")


class Tls(Section):
    """Encryption of both ports; off without a certificate."""

    certificate: str | None = setting(None, "PEM file of the server's certificate chain")
    key: str | None = setting(None, "PEM file of the certificate's private key")
    mutual: bool = setting(False, "Ask clients for a certificate as well")
    client_authority: str | None = setting(None, "PEM file of the authority that signs clients")

    def check(self) -> None:
        has_certificate = self.certificate is not None
        has_authority = self.client_authority is not None
        has_key = self.key is not None
        for holds, name, requirement in (
            (has_key or not has_certificate, "key", "name a file when certificate does"),
            (has_certificate or not has_key, "certificate", "name a file when key does"),
            (has_certificate or not self.mutual, "certificate", "name a file when mutual is true"),
            (
                has_authority or not self.mutual,
                "client_authority",
                "name a file when mutual is true",
            ),
            # Otherwise an operator believes that clients are checked, and they are not.
            (self.mutual or not has_authority, "mutual", "be true when client_authority is set"),
        ):
            self.require(holds, name, requirement)


class Serving(Section):
    """Where the service listens, what encodes, and how it protects itself."""

    host: str = setting("127.0.0.1", "Address to listen on; 0.0.0.0 for all")
    grpc_port: int = setting(8600, "Port of the gRPC API; 0: any free port", "[0, 65_535]")
    http_port: int = setting(8601, "Port of the HTTP API; 0: any free port", "[0, 65_535]")
    backend: Literal["embedded", "tf_serving"] = setting(
        "embedded", "What encodes queries: this process, or TF Serving"
    )
    workers: int | None = setting(
        None, "Processes that answer; null: one per core, at most 4", "[1, 64]"
    )
    deadline_milliseconds: int = setting(1_000, "Time limit of a request that sets none", _DEADLINE)
    poll_seconds: float = setting(5.0, "Seconds between checks for a new release", "(0, 3_600]")
    drain_seconds: float = setting(
        30.0, "Time for admitted requests to finish after SIGTERM", "[0, 3_600]"
    )
    token_file: str | None = setting(
        None, "File of accepted bearer tokens, one per line; null: no token required"
    )
    log_queries: bool = setting(False, "Write query text to the log")
    tf_serving: TfServing = TfServing()
    batching: Batching = Batching()
    cache: Cache = Cache()
    limits: Limits = Limits()
    tls: Tls = Tls()

    def check(self) -> None:
        self.require(
            self.http_port == 0 or self.http_port != self.grpc_port,
            "http_port",
            "differ from grpc_port",
        )
        self.require(
            self.backend != "tf_serving" or self.tf_serving.address is not None,
            "tf_serving.address",
            "be host:port when backend is tf_serving",
        )
        # A larger request could not be admitted even to an empty queue.
        self.require(
            self.limits.queries_per_call <= self.batching.queue_limit,
            "limits.queries_per_call",
            f"be at most batching.queue_limit ({self.batching.queue_limit})",
        )

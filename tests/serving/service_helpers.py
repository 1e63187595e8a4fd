"""A real server on loopback, and real clients of both of its APIs."""

import asyncio
import contextlib
import datetime
import functools
import ipaddress
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx
from anyio.from_thread import start_blocking_portal
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pebr_tf.config import Config, Serving
from serving.proto import retrieval_pb2_grpc
from serving.retriever import Retriever
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.server import Server
from serving.service.sockets import listen

# Far above what any answer takes: a test that waits so long has failed.
PATIENCE = 30
# The head of a request whose body does not come.
PARTIAL_POST = (
    b"POST /v1/retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    b"content-length: 100\r\n\r\n{"
)
# Above what the start of a process or a drain takes on a busy machine.
START = 120


@dataclass
class Served:
    """A server and what a test asks it with."""

    server: Server
    engine: Engine
    metrics: Metrics
    http: httpx.Client
    channel: grpc.Channel
    stub: retrieval_pb2_grpc.RetrievalStub

    def post(self, body, **options):
        return self.http.post("/v1/retrieve", json=body, **options)

    def post_bytes(self, content, kind="application/json"):
        headers = {"content-type": kind}
        return self.http.post("/v1/retrieve", content=content, headers=headers)

    def count(self, api, status):
        labels = {"api": api, "status": status}
        return self.metrics.registry.get_sample_value("pebr_requests_total", labels) or 0


class GatedEngine(Engine):
    """The engine, whose batches wait in a thread until `gate` is set."""

    def __init__(self, *arguments):
        self.gate = threading.Event()
        self.waiting = threading.Event()
        super().__init__(*arguments, ThreadPoolExecutor(1))

    def _answer(self, batch):
        self.waiting.set()
        assert self.gate.wait(PATIENCE)
        return super()._answer(batch)


def service_settings(**changes) -> Serving:
    """Settings with any free ports, and `changes` by dotted name with __ for the dot."""
    defaults = {
        "grpc_port": 0,
        "http_port": 0,
        "batching.max_delay_milliseconds": 0,
        "deadline_milliseconds": 1_000 * PATIENCE,
    }
    named = {name.replace("__", "."): value for name, value in changes.items()}
    named = {f"serving.{name}": value for name, value in {**defaults, **named}.items()}
    return Config().replace_all(named).serving


@functools.lru_cache
def loaded(directory):
    """A release, loaded once for all tests: it has no state of a server."""
    return Retriever.load(directory)


@contextlib.contextmanager
def running(engine, settings, metrics):
    """Serves an engine while the block runs, and stops it at the end; yields the `Server`."""
    listener = listen(settings.host, settings.http_port, "http_port")
    listener.setblocking(False)

    async def start():
        server = Server(engine, settings, metrics)
        await server.start()
        server.http_port = listener.getsockname()[1]
        server.accepting = asyncio.create_task(accept(server))
        return server

    async def accept(server):
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            await server.adopt(connection)

    async def stop(server):
        await server.stop()
        server.accepting.cancel()
        await asyncio.wait([server.accepting])
        listener.close()

    # In a thread of its own: this one may already run the loop of a browser.
    with start_blocking_portal(backend_options={"use_uvloop": True}) as portal:
        server = portal.call(start)
        try:
            yield server
        finally:
            portal.call(stop, server)


@contextlib.contextmanager
def served(directory, kind=Engine, **changes):
    """Serves a release while the block runs."""
    settings, metrics = service_settings(**changes), Metrics()
    engine = kind(loaded(directory), settings, metrics)
    with (
        running(engine, settings, metrics) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.http_port}", timeout=PATIENCE) as http,
        grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
    ):
        stub = retrieval_pb2_grpc.RetrievalStub(channel)
        yield Served(server, engine, metrics, http, channel, stub)


def rejection(call, *arguments, **options):
    """The name of the status and the sentence of a gRPC call that must fail."""
    try:
        call(*arguments, **{"timeout": PATIENCE, **options})
    except grpc.RpcError as error:
        return error.code().name, error.details()
    raise AssertionError("the call was answered")


def poll(condition, patience=PATIENCE):
    """Waits until something holds: what is counted after an answer has left, say."""
    pause = threading.Event()
    for _ in range(patience * 200):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("it never came to hold")


class ServeProcess:
    """A running `pebr serve` on any free ports, which logs to a file."""

    def __init__(self, log, *arguments):
        self._log = log
        command = [sys.executable, "-m", "pebr_tf.cli.main", "serve", "--grpc-port", "0"]
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [*command, "--http-port", "0", *map(str, arguments)],
                stderr=stderr,
                cwd=Path(__file__).parents[2],
            )

    def lines(self, event=None):
        """The whole lines of the log so far, all or those of one event."""
        lines = self._log.read_text().rpartition("\n")[0].splitlines()
        # protobuf writes lines of its own about a text that is not UTF-8.
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in found if event in (None, line["event"])]

    def event(self, name):
        """The first such event, as soon as it is there."""
        poll(lambda: self.lines(name) or self.process.poll() is not None, START)
        assert self.lines(name), self._log.read_text()
        return self.lines(name)[0]


class Authority:
    """Signs certificates for 127.0.0.1, and writes them as PEM files."""

    def __init__(self, folder, name):
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.path = self._sign(name, self._key, f"{name}.pem")

    def issue(self, name):
        """Paths of a new certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        path = self._folder / f"{name}.key"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return self._sign(name, key, f"{name}.crt"), str(path)

    def _sign(self, name, key, file):
        subject, issuer = (
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
            for text in (name, self._name)
        )
        now = datetime.datetime.now(datetime.timezone.utc)
        hour = datetime.timedelta(hours=1)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - hour)
            .not_valid_after(now + hour)
            .add_extension(x509.BasicConstraints(key is self._key, None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            # Python 3.13 requires these.
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                # To sign data, and the authority to sign certificates.
                x509.KeyUsage(True, *[False] * 4, key is self._key, *[False] * 3),
                critical=True,
            )
            .sign(self._key, hashes.SHA256())
        )
        path = self._folder / file
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return str(path)

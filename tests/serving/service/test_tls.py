"""TLS and mutual TLS of both ports, with certificates of an authority made for the test."""

import ssl

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from service_helpers import PATIENCE, Authority, served

from pebr_tf.config import Tls
from pebr_tf.errors import UserError
from serving.client import (
    InvalidRequest,
    RetrievalClient,
    TlsFiles,
    Unauthenticated,
    Unavailable,
)
from serving.service.tls import load_credentials


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def files(authority):
    return authority.issue("server")


def http_items(port, trusted, client=None):
    """Asks over HTTPS, by itself with the certificate and key of `client`."""
    context = ssl.create_default_context(cafile=trusted)
    if client is not None:
        context.load_cert_chain(*client)
    with httpx.Client(verify=context, timeout=PATIENCE) as http:
        return http.get(f"https://127.0.0.1:{port}/v1/release").json()["items"]


def grpc_items(port, trusted, client=None):
    tls = TlsFiles(trusted, *(client or ()))
    with RetrievalClient(f"127.0.0.1:{port}", tls=tls, timeout=PATIENCE, retries=0) as caller:
        return caller.release().items


@pytest.mark.parametrize("mutual", [False, True])
def test_both_ports_are_encrypted(retriever, authority, files, tmp_path, mutual):
    stranger = Authority(tmp_path, "stranger")
    known, unknown = authority.issue("client"), stranger.issue("client")
    tls = {"tls__certificate": files[0], "tls__key": files[1]}
    if mutual:
        tls |= {"tls__mutual": True, "tls__client_authority": authority.path}
    with served(retriever.release.directory, **tls) as service:
        ports = service.server.http_port, service.server.grpc_port
        client = known if mutual else None
        assert http_items(ports[0], authority.path, client) == 200
        assert grpc_items(ports[1], authority.path, client) == 200
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            http_items(ports[0], stranger.path, client)
        with pytest.raises(Unavailable):
            grpc_items(ports[1], stranger.path, client)
        with pytest.raises(httpx.RemoteProtocolError):
            service.http.get("/healthz")
        for client in (None, unknown) if mutual else ():
            # The rejection comes with the first read, as an alert or as a closed connection.
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                http_items(ports[0], authority.path, client)
            with pytest.raises(Unavailable):
                grpc_items(ports[1], authority.path, client)


def test_the_client_has_a_token_and_a_certificate(retriever, authority, files, tmp_path):
    (tmp_path / "tokens").write_text("s3cret\n")
    clients = Authority(tmp_path, "clients")
    settings = {
        "tls__certificate": files[0],
        "tls__key": files[1],
        "tls__mutual": True,
        "tls__client_authority": clients.path,
        "token_file": str(tmp_path / "tokens"),
    }
    mine = dict(zip(("certificate", "key"), clients.issue("client"), strict=True))
    with served(retriever.release.directory, **settings) as service:
        address = f"dns:///localhost:{service.server.grpc_port}"
        tls = TlsFiles(authority=authority.path, server_name="127.0.0.1", **mine)
        with RetrievalClient(address, "s3cret", tls, timeout=PATIENCE) as client:
            (result,) = client.retrieve(["phone"], top_k=9, limit=2, fields=[])
            assert [dict(item.fields) for item in result] == [{}, {}]
            with pytest.raises(InvalidRequest, match="queries") as caught:
                client.retrieve(["phone", " "], request_id="r-1")
            assert (caught.value.field, caught.value.request_id) == ("queries[1]", "r-1")
        with RetrievalClient(address, "other", tls, timeout=PATIENCE) as client:
            assert client.healthy()
            with pytest.raises(Unauthenticated):
                client.retrieve(["phone"])


def test_files_that_cannot_be_used(authority, files, tmp_path):
    certificate, key = files
    other_key = authority.issue("other")[1]
    text = tmp_path / "text.pem"
    text.write_text("no PEM\n")
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    missing = str(tmp_path / "missing.pem")

    def sentence(**changes):
        settings = {"certificate": certificate, "key": key, **changes}
        with pytest.raises(UserError) as caught:
            load_credentials(Tls(**settings))
        return str(caught.value)

    unreadable = f"must be a readable file. Received: {missing} (No such file or directory)."
    for name in ("certificate", "key"):
        assert sentence(**{name: missing}) == f"serving.tls.{name} {unreadable}"
    no_authority = sentence(mutual=True, client_authority=missing)
    assert no_authority == f"serving.tls.client_authority {unreadable}"
    assert sentence(key=other_key) == (
        f"serving.tls.key must be the key of serving.tls.certificate ({certificate}). "
        f"Received: {other_key}, which is another key."
    )
    assert sentence(certificate=str(text)).startswith(
        "serving.tls.certificate and serving.tls.key must be PEM files. "
        f"Received: {text} and {key} ("
    )
    assert sentence(key=str(locked)) == (
        f"serving.tls.key must be a key without a password. Received: {locked}."
    )
    assert sentence(mutual=True, client_authority=str(text)).startswith(
        f"serving.tls.client_authority must be a PEM file. Received: {text} ("
    )

"""TLS and mutual TLS for both ports, from the files in `serving.tls`."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from pebr_tf.config import Tls
from pebr_tf.errors import UserError


@dataclass(frozen=True)
class Credentials:
    """TLS credentials of the gRPC server and of the HTTP server."""

    grpc: grpc.ServerCredentials
    http: ssl.SSLContext


def load_credentials(settings: Tls) -> Credentials | None:
    """Reads the certificate, its key and the clients' authority; returns None without TLS.

    Raises:
      UserError: A file cannot be read or is not PEM, or the key does not fit the certificate.
    """
    if settings.certificate is None or settings.key is None:
        return None
    certificate = _read("certificate", settings.certificate)
    key = _read("key", settings.key)
    authority = None
    if settings.mutual and settings.client_authority is not None:
        authority = _read("client_authority", settings.client_authority)
    # gRPC reports a bad file only when a client connects, so OpenSSL checks the files for both.
    context = _context(settings)
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )
    return Credentials(credentials, context)


def _context(settings: Tls) -> ssl.SSLContext:
    assert settings.certificate is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certificate, settings.key, password=_no_password)
    except _Encrypted:
        raise UserError(
            f"serving.tls.key must be a key without a password. Received: {settings.key}."
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise UserError(
                f"serving.tls.key must be the key of serving.tls.certificate "
                f"({settings.certificate}). Received: {settings.key}, which is another key."
            ) from None
        raise UserError(
            "serving.tls.certificate and serving.tls.key must be PEM files. "
            f"Received: {settings.certificate} and {settings.key} ({_reason(error)})."
        ) from None
    if settings.mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(settings.client_authority)
        except ssl.SSLError as error:
            raise UserError(
                "serving.tls.client_authority must be a PEM file. "
                f"Received: {settings.client_authority} ({_reason(error)})."
            ) from None
    return context


class _Encrypted(Exception):
    """The key is encrypted."""


def _no_password() -> str:
    # Otherwise OpenSSL would ask on the terminal, and a server without one would wait for ever.
    raise _Encrypted


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(
            f"serving.tls.{name} must be a readable file. Received: {path} ({error.strerror})."
        ) from None


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "not PEM").replace("_", " ").lower()

"""Listening on the two ports, with errors that name the setting."""

import ipaddress
import os
import socket

from pebr_tf.errors import UserError


def listen(host: str, port: int, name: str, shared: bool = False) -> socket.socket:
    """Returns a socket that listens on an address.

    Port 0 is any free port; `name` is the port's name in `serving`, for the error. With `shared`,
    the socket only reserves the port: several processes then listen on it and share the calls.

    Raises:
      UserError: The address is in use, not local, or not permitted.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise cannot_listen(name, host, port, error.strerror or str(error)) from None
    try:
        option = socket.SO_REUSEPORT if shared else socket.SO_REUSEADDR
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind(address)
        if not shared:
            # Two sockets may share an address until one of them listens.
            listener.listen(2_048)
    except OSError as error:
        listener.close()
        raise cannot_listen(name, host, port, os.strerror(error.errno or 0).lower()) from None
    return listener


def cannot_listen(name: str, host: str, port: int, reason: str) -> UserError:
    """What a user is told about a port that cannot be listened on."""
    return UserError(
        f"serving.{name} must be one that can be listened on. Received: {host}:{port} ({reason})."
    )


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

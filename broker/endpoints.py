"""Listeners as the configuration names them: NAME://host:port, opened as sockets, advertised to clients."""

from __future__ import annotations

import socket
from typing import NamedTuple

from protocol.config import ConfigError

WILDCARDS = ("", "0.0.0.0", "::")
"""Hosts that stand for every interface; clients cannot be told to connect to them."""


class Endpoint(NamedTuple):
    """A listener's name, and where it is."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_endpoint(text: str, option: str = "listeners") -> Endpoint:
    """The endpoint that `NAME://host:port` spells; ConfigError says what is wrong with it."""
    name, separator, address = text.strip().partition("://")
    host, colon, port = address.rpartition(":")
    if not (name and separator and colon and port.isdecimal() and int(port) <= 0xFFFF):
        raise ConfigError(f"{option}: {text!r} is not NAME://host:port with a port of 0 to 65535", name=option)
    return Endpoint(name.upper(), host.strip("[]"), int(port))


def bind(endpoint: Endpoint, backlog: int) -> socket.socket:
    """A listening socket; OSError names the address. Port 0 takes a free port."""
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((endpoint.host, endpoint.port))
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {endpoint}: {error.strerror}") from None
    return sock


def advertised(bound: Endpoint, configured: dict[str, Endpoint]) -> Endpoint:
    """What clients are told for a bound listener: what is configured, with the port that was really bound."""
    told = configured.get(bound.name)
    if told is not None:
        return told._replace(port=told.port or bound.port)
    return bound._replace(host=socket.getfqdn()) if bound.host in WILDCARDS else bound

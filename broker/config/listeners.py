"""Listeners and advertised addresses: NAME://host:port, as Kafka's listeners options spell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from protocol.config import ConfigError
from protocol.numbers import port_number

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Security protocols by their numbers in the metadata log (org.apache.kafka.common.security.auth.SecurityProtocol)."""


class ListenerAddress(NamedTuple):
    """A listener's address, to bind or to advertise. An empty host binds every interface."""

    name: str
    host: str
    port: int
    security_protocol: str


def is_sasl(listener: ListenerAddress) -> bool:
    """True if clients of the listener authenticate by SASL."""
    return listener.security_protocol.startswith("SASL_")


def is_tls(listener: ListenerAddress) -> bool:
    """True if the listener's connections are encrypted."""
    return listener.security_protocol.endswith("SSL")


def protocol_map(text: str) -> dict[str, str]:
    """Returns the security protocol by listener name, from listener.security.protocol.map. Raises ConfigError."""
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.rpartition(":")
        if not colon or protocol.strip().upper() not in PROTOCOLS:
            problem = f"{pair!r} is not NAME:PROTOCOL with a protocol of {', '.join(PROTOCOLS)}"
            raise ConfigError(f"listener.security.protocol.map: {problem}", name="listener.security.protocol.map")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_listeners(option: str, texts: tuple[str, ...], protocols: Mapping[str, str]) -> tuple[ListenerAddress, ...]:
    """Returns the listeners in option `option`. Raises ConfigError for a malformed listener, or a name that is used
    twice.
    """
    listeners = tuple(_parse(option, text, protocols) for text in texts)
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{option}: listener names must be unique, {name} appears twice", name=option)
    return listeners


def _parse(option: str, text: str, protocols: Mapping[str, str]) -> ListenerAddress:
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    number = port_number(port)
    if not (name and separator and colon) or number is None or "/" in host:
        raise ConfigError(
            f"{option}: {text!r} is not NAME://host:port, such as PLAINTEXT://127.0.0.1:9092", name=option
        )
    name = name.upper()
    if name not in protocols:
        raise ConfigError(f"{option}: listener {name} has no protocol in listener.security.protocol.map", name=option)
    return ListenerAddress(name, host.removeprefix("[").removesuffix("]"), number, protocols[name])


def metrics_address(text: str | None) -> tuple[str, int] | None:
    """Returns host and port of odradek.metrics.listener; None if it isn't set. Raises ConfigError."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    number = port_number(port)
    if not colon or number is None or "/" in host:
        name = "odradek.metrics.listener"
        raise ConfigError(f"{name}: {text!r} is not host:port, such as 127.0.0.1:9404", name=name)
    return host.removeprefix("[").removesuffix("]"), number

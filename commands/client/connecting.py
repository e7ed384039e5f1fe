"""Turns the settings of a connection into the outbound client's options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from client.address import Address
from client.handshake import Authenticator
from client.settings import Settings
from commands.client.settings import BOOTSTRAP, ClientSetting
from commands.errors import misuse
from protocol.lazy import lazy

if TYPE_CHECKING:
    import ssl

    from client import authenticator
    from commands.client import tls
else:  # with SASL or TLS
    authenticator = lazy("client.authenticator")
    tls = lazy("commands.client.tls")

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
SASL_SSL: Final = "SASL_SSL"
PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

JAAS_FIELD: Final = r"""(?<![\w.]){}\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';=]+))"""
"""Pattern of a field of a JAAS line, such as username="ana"."""


class Destination(NamedTuple):
    """The cluster to connect to."""

    bootstrap: tuple[Address, ...]
    timeout_ms: int
    """Time within which each request must be answered (request.timeout.ms)."""
    connection: Settings = Settings()


def destination(settings: Mapping[str, ClientSetting]) -> Destination:
    """Returns the cluster that the settings describe. Raises CommandError, which names the source of an invalid
    setting."""
    protocol = security_protocol(settings)
    return Destination(
        addresses(settings[BOOTSTRAP]),
        milliseconds(settings, "request.timeout.ms"),
        Settings(
            client_id=settings["client.id"].value,
            connect_timeout_ms=milliseconds(settings, "socket.connection.setup.timeout.ms"),
            authenticators=(authenticator_of(settings),) if protocol in (SASL_PLAINTEXT, SASL_SSL) else (),
            tls=_tls(settings) if protocol in (SSL, SASL_SSL) else None,
        ),
    )


def security_protocol(settings: Mapping[str, ClientSetting]) -> str:
    """Returns the protocol of the listener, one of PROTOCOLS."""
    value, source = settings["security.protocol"]
    if value.upper() not in PROTOCOLS:
        raise misuse(f"security.protocol {value} ({source}): expected one of {', '.join(PROTOCOLS)}")
    return value.upper()


def _tls(settings: Mapping[str, ClientSetting]) -> ssl.SSLContext:
    return tls.tls_context(settings)


def addresses(setting: ClientSetting) -> tuple[Address, ...]:
    """Returns the bootstrap addresses."""
    texts = [text for text in setting.value.split(",") if text.strip()]
    try:
        return tuple(Address.parse(text.rpartition("://")[2]) for text in texts) or _nobody(setting)
    except ValueError as error:
        raise misuse(f"{BOOTSTRAP} ({setting.source}): {error}") from None


def _nobody(setting: ClientSetting) -> tuple[Address, ...]:
    raise misuse(f"{BOOTSTRAP} ({setting.source}) is empty: expected HOST:PORT[,HOST:PORT…]")


def milliseconds(settings: Mapping[str, ClientSetting], name: str) -> int:
    """Returns a setting in milliseconds."""
    value, source = settings[name]
    if not (value.isascii() and value.isdecimal() and 0 < int(value) < 1 << 31):
        raise misuse(f"{name} {value} ({source}): expected milliseconds, such as 30000")
    return int(value)


def authenticator_of(settings: Mapping[str, ClientSetting]) -> Authenticator:
    """Returns the PLAIN or SCRAM authenticator with the name and password of sasl.username and sasl.password, or of
    sasl.jaas.config. Raises CommandError."""
    mechanism = settings["sasl.mechanism"]
    if mechanism.value not in authenticator.MECHANISMS:
        expected = ", ".join(authenticator.MECHANISMS)
        raise misuse(f"sasl.mechanism {mechanism.value} ({mechanism.source}): expected one of {expected}")
    jaas = settings["sasl.jaas.config"]
    name = settings["sasl.username"].value or jaas_field(jaas.value, "username")
    password = settings["sasl.password"].value or jaas_field(jaas.value, "password")
    if not name:
        protocol = settings["security.protocol"].value
        raise misuse(f"security.protocol {protocol} needs sasl.username and sasl.password, or sasl.jaas.config")
    return authenticator.authenticator(mechanism.value, name, password, os.urandom)


def jaas_field(line: str, field: str) -> str:
    """Returns a field of a JAAS line, quoted or not; "" if the line doesn't have it."""
    match = re.search(JAAS_FIELD.format(field), line)
    if match is None:
        return ""
    return re.sub(r"\\(.)", r"\1", next(value for value in match.groups() if value is not None))

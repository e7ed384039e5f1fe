"""Settings of a connection, made into what the outbound client takes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.peers import Address, Settings
from commands.errors import misuse
from commands.settings import BOOTSTRAP, ClientSetting
from protocol.handshake import Authenticator

PLAINTEXT: Final = "PLAINTEXT"
SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
PROTOCOLS: Final = (PLAINTEXT, SASL_PLAINTEXT)

JAAS_FIELD: Final = r'\b{}\s*=\s*"((?:[^"\\]|\\.)*)"'
"""A field of a line for Java's login modules, such as username="ana"."""


class Destination(NamedTuple):
    """The cluster to talk to: where it is first looked for, and how."""

    bootstrap: tuple[Address, ...]
    settings: Settings
    timeout_ms: int
    """The time for each request (request.timeout.ms)."""


def destination(settings: Mapping[str, ClientSetting]) -> Destination:
    """Returns where the settings lead. Raises CommandError that names the source of one that makes no sense."""
    protocol = settings["security.protocol"]
    if protocol.value.upper() not in PROTOCOLS:
        raise misuse(f"security.protocol {protocol.value} ({protocol.source}): {' or '.join(PROTOCOLS)} is expected")
    connect_ms = milliseconds(settings, "socket.connection.setup.timeout.ms")
    return Destination(
        bootstrap=addresses(settings[BOOTSTRAP]),
        settings=Settings(
            client_id=settings["client.id"].value,
            connect_timeout_ms=connect_ms,
            authenticators=(authenticator_of(settings),) if protocol.value.upper() == SASL_PLAINTEXT else (),
        ),
        timeout_ms=milliseconds(settings, "request.timeout.ms"),
    )


def addresses(setting: ClientSetting) -> tuple[Address, ...]:
    """Returns the brokers to begin with."""
    texts = [text for text in setting.value.split(",") if text.strip()]
    try:
        return tuple(Address.parse(text.rpartition("://")[2]) for text in texts) or _nobody(setting)
    except ValueError as error:
        raise misuse(f"{BOOTSTRAP} ({setting.source}): {error}") from None


def _nobody(setting: ClientSetting) -> tuple[Address, ...]:
    raise misuse(f"{BOOTSTRAP} ({setting.source}) is empty: HOST:PORT[,HOST:PORT…] is expected")


def milliseconds(settings: Mapping[str, ClientSetting], name: str) -> int:
    """Returns a setting that is a time."""
    value, source = settings[name]
    if not (value.isascii() and value.isdecimal() and 0 < int(value) < 1 << 31):
        raise misuse(f"{name} {value} ({source}): milliseconds are expected, such as 30000")
    return int(value)


def authenticator_of(settings: Mapping[str, ClientSetting]) -> Authenticator:
    """Returns what authenticates by PLAIN or SCRAM, with the name and password of sasl.username and sasl.password, or
    of sasl.jaas.config. Raises CommandError."""
    from protocol.sasl.authenticator import MECHANISMS, authenticator

    mechanism = settings["sasl.mechanism"]
    if mechanism.value not in MECHANISMS:
        raise misuse(f"sasl.mechanism {mechanism.value} ({mechanism.source}): {', '.join(MECHANISMS)} are there")
    jaas = settings["sasl.jaas.config"]
    name = settings["sasl.username"].value or _jaas_field(jaas, "username")
    password = settings["sasl.password"].value or _jaas_field(jaas, "password")
    if not name:
        raise misuse("security.protocol SASL_PLAINTEXT needs sasl.username and sasl.password, or sasl.jaas.config")
    return authenticator(mechanism.value, name, password, os.urandom)


def _jaas_field(jaas: ClientSetting, field: str) -> str:
    match = re.search(JAAS_FIELD.format(field), jaas.value)
    return "" if match is None else re.sub(r"\\(.)", r"\1", match[1])

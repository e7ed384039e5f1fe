"""Settings of a connection, made into what the outbound client takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.peers import Address, Settings
from commands.errors import misuse
from commands.settings import BOOTSTRAP, ClientSetting

PLAINTEXT: Final = "PLAINTEXT"


class Destination(NamedTuple):
    """The cluster to talk to: where it is first looked for, and how."""

    bootstrap: tuple[Address, ...]
    settings: Settings
    timeout_ms: int
    """The time for each request (request.timeout.ms)."""


def destination(settings: Mapping[str, ClientSetting]) -> Destination:
    """Returns where the settings lead. Raises CommandError that names the source of one that makes no sense."""
    protocol = settings["security.protocol"]
    if protocol.value.upper() != PLAINTEXT:
        raise misuse(f"security.protocol {protocol.value} ({protocol.source}): this client speaks PLAINTEXT alone")
    connect_ms = milliseconds(settings, "socket.connection.setup.timeout.ms")
    return Destination(
        bootstrap=addresses(settings[BOOTSTRAP]),
        settings=Settings(client_id=settings["client.id"].value, connect_timeout_ms=connect_ms),
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

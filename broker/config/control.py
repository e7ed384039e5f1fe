"""The control server of tests: whether and where it is served, which only the profile `test` allows."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from protocol.config import STRING, Config, ConfigError, option
from protocol.numbers import port_number

OPTION: Final = "odradek.control.listener"
UNIX: Final = "unix:"
LOCALHOST: Final = "127.0.0.1"


class ControlAddress(NamedTuple):
    """A loopback host and port, or the path of a Unix socket, which then is not empty."""

    host: str
    port: int
    path: str = ""


class Controlled(Protocol):
    """A configuration, as far as it says whether there may be a control server."""

    @property
    def odradek_control_listener(self) -> str | None: ...

    @property
    def odradek_profile(self) -> str: ...

    @property
    def is_broker(self) -> bool: ...


class ControlOptions(Config):
    """The control server of tests: whether and where it is served."""

    odradek_control_listener = option(
        OPTION,
        STRING,
        None,
        doc="Address, as host:port of a loopback address or unix:/path, of the control server (docs/control.md), by "
        "which tests set faults, move the clock and look in. Needs odradek.profile=test; nothing is served unless it "
        "is set.",
    )


def control_address(text: str | None) -> ControlAddress | None:
    """Returns the address that odradek.control.listener names, None where it is not set. Raises ConfigError for one
    that others than this machine's users could reach."""
    if not text:
        return None
    if text.startswith(UNIX):
        return _socket_address(text)
    host, colon, port = text.rpartition(":")
    number = port_number(port)
    if not colon or number is None:
        raise _invalid(text, "is not host:port, such as 127.0.0.1:0, nor unix:/path")
    host = host.removeprefix("[").removesuffix("]")
    host = LOCALHOST if host.lower() == "localhost" else host
    if not _is_loopback(host):
        raise _invalid(text, "is not a loopback address, such as 127.0.0.1:0: whoever reaches it does as he likes")
    return ControlAddress(host, number)


def _socket_address(text: str) -> ControlAddress:
    path = text.removeprefix(UNIX)
    if not path.startswith("/"):
        raise _invalid(text, "needs an absolute path, such as unix:/run/broker.sock")
    return ControlAddress("", 0, path)


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address  # no other start needs it

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _invalid(text: str, problem: str) -> ConfigError:
    return ConfigError(f"{OPTION}: {text!r} {problem}", name=OPTION)


def control_problem(config: Controlled) -> str | None:
    """Returns why this node may have no control server; None where it has none, or may."""
    if config.odradek_control_listener is None:
        return None
    if config.odradek_profile != "test":
        return (
            f"{OPTION}: whoever reaches it makes the broker fail; it is for a broker of tests alone, "
            "whose odradek.profile is test"
        )
    if not config.is_broker:
        return f"{OPTION}: needs a broker, and process.roles has controller alone"
    return None

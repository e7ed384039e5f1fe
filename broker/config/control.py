"""Options of the control server for tests, which only odradek.profile=test allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from protocol.config import STRING, Config, ConfigError, option
from protocol.lazy import lazy
from protocol.numbers import port_number

if TYPE_CHECKING:
    import ipaddress
else:  # with a control server
    ipaddress = lazy("ipaddress")

OPTION: Final = "odradek.control.listener"
UNIX: Final = "unix:"
LOCALHOST: Final = "127.0.0.1"


class ControlAddress(NamedTuple):
    """A loopback host and port, or the path of a Unix socket if `path` is not empty."""

    host: str
    port: int
    path: str = ""


class Controlled(Protocol):
    """The options that decide if a control server may run."""

    @property
    def odradek_control_listener(self) -> str | None: ...

    @property
    def odradek_profile(self) -> str: ...

    @property
    def is_broker(self) -> bool: ...


class ControlOptions(Config):
    """Options of the control server for tests."""

    odradek_control_listener = option(
        STRING,
        None,
        "Address of the control server (docs/control.md), with which tests inject faults, move the clock and "
        "inspect the broker: host:port of a loopback address, or unix:/path. Needs odradek.profile=test. Unless it is "
        "set, there is no control server.",
    )


def control_address(text: str | None) -> ControlAddress | None:
    """Returns the address in odradek.control.listener; None if it isn't set. Raises ConfigError if other machines could
    reach it.
    """
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
        raise _invalid(
            text,
            ("is not a loopback address, such as 127.0.0.1:0: any client of the control server controls the broker"),
        )
    return ControlAddress(host, number)


def _socket_address(text: str) -> ControlAddress:
    path = text.removeprefix(UNIX)
    if not path.startswith("/"):
        raise _invalid(text, "needs an absolute path, such as unix:/run/broker.sock")
    return ControlAddress("", 0, path)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _invalid(text: str, problem: str) -> ConfigError:
    return ConfigError(f"{OPTION}: {text!r} {problem}", name=OPTION)


def control_problem(config: Controlled) -> str | None:
    """Returns the reason why this node may not have a control server; None if it has none, or may have it."""
    if config.odradek_control_listener is None:
        return None
    if config.odradek_profile != "test":
        return f"{OPTION}: needs odradek.profile=test, because its clients can make the broker fail"
    if not config.is_broker:
        return f"{OPTION}: needs a broker, but process.roles is controller"
    return None

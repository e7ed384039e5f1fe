"""Binds listeners to sockets, and derives their advertised addresses."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from broker.config import BrokerConfig
from broker.config.listeners import ListenerAddress

WILDCARDS = ("", "0.0.0.0", "::")
"""Hosts that stand for every interface; they cannot be advertised."""


def address(listener: ListenerAddress) -> str:
    """Returns HOST:PORT, with an IPv6 host in brackets."""
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{host}:{listener.port}"


BUFFERS = (
    ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
    ("socket.send.buffer.bytes", socket.SO_SNDBUF),
)
"""Socket options of buffer sizes. They are set only if the broker's options are set, because the kernel sizes buffers
better than any constant, including Kafka's 100 KiB."""


BACKLOG = "socket.listen.backlog.size"

WAITING = 1_024
"""Connections that may wait in the kernel unless the option is set. The event loop accepts one a turn: with Kafka's 50,
most of a thousand clients that connect at once would have to try again after a second."""


def bind(listener: ListenerAddress, config: BrokerConfig) -> tuple[socket.socket, ListenerAddress]:
    """Returns a bound socket, which rejects connections until `listen`, and the listener with its port. Raises OSError
    with the address."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
        )  # finds clients whose machine is gone without closing
        for option, number in BUFFERS:
            size_bytes = int(config.explicit.get(option, -1))
            if size_bytes >= 0:
                sock.setsockopt(socket.SOL_SOCKET, number, size_bytes)  # accepted sockets inherit it
        sock.bind((listener.host, listener.port))
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise _cannot_listen(listener, error) from None
    return sock, listener._replace(port=sock.getsockname()[1])


def listen(sock: socket.socket, listener: ListenerAddress, config: BrokerConfig) -> None:
    """Lets clients connect to a bound socket. Raises OSError with the address if another process listens there."""
    try:
        sock.listen(config.socket_listen_backlog_size if BACKLOG in config.explicit else WAITING)
    except OSError as error:
        raise _cannot_listen(listener, error) from None


def _cannot_listen(listener: ListenerAddress, error: OSError) -> OSError:
    return OSError(error.errno, f"cannot listen on {address(listener)}: {error.strerror or error}")


def advertised(bound: ListenerAddress, addresses: Iterable[ListenerAddress]) -> ListenerAddress:
    """Returns the advertised address of a bound listener: the configured address, with the port that was bound."""
    configured = next((listener for listener in addresses if listener.name == bound.name), bound)
    host = socket.getfqdn() if configured.host in WILDCARDS else configured.host
    return configured._replace(host=host, port=configured.port or bound.port)

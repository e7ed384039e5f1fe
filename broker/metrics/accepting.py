"""Accepts the connections of scrapers, one each EACH_S: a scraper that comes more often waits in the kernel, which
costs the event loop nothing.

A connection takes the loop some fifty microseconds, and a client that only connects can easily make ten thousand a
second.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final, cast

from broker.accepting import Accepting, MakeProtocol

EACH_S: Final = 0.002
"""Time between two connections: five hundred a second take at most a few hundredths of the loop's time. A single
connection doesn't wait."""

SENT_BYTES_PER_S: Final = 100_000_000
"""Average rate of pages: copying as many bytes takes the loop a few hundredths of its time. Without it scrapers that
ask continuously would have it copy 13 MB five hundred times a second."""

LONGEST_PAUSE_S: Final = 1.0
"""Maximum time that a health check waits for the pages of others."""

BACKLOG: Final = 128
"""Connections that wait in the kernel: a quarter of a second's worth. The kernel drops any more, and their clients try
again."""

SEND_BUFFER_BYTES: Final = 128 << 10
"""A page of ten thousand partitions has 13 MB. The kernel would accept half of it at once, and the loop would wait for
milliseconds while it is copied."""


class Door:
    """The sockets for scrapers, from `open` to `close`."""

    def __init__(self, make_protocol: MakeProtocol) -> None:
        """`make_protocol` is called for each connection."""
        self._make_protocol = make_protocol
        self._accepting: list[Accepting] = []
        self._owed_s = 0.0
        """Additional time of the next pause, for the bytes sent."""

    async def open(self, host: str, port: int) -> int:
        """Binds all addresses of a host, accepts connections from now on, and returns the port. Raises OSError."""
        sockets = await listening(host, port)
        self._accepting = [Accepting(sock, self._make_protocol, rest=self._rest) for sock in sockets]
        return int(sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stops accepting connections."""
        for accepting in self._accepting:
            accepting.close()

    def note_sent(self, size_bytes: int) -> None:
        """Makes the next connection wait for an answer of `size_bytes`."""
        self._owed_s = min(self._owed_s + size_bytes / SENT_BYTES_PER_S, LONGEST_PAUSE_S)

    async def _rest(self) -> None:
        await pause(EACH_S)
        while owed_s := self._owed_s:
            self._owed_s = 0.0
            await pause(owed_s)


async def pause(seconds: float) -> None:
    """Returns when the next connection has its turn."""
    await asyncio.sleep(seconds)


async def listening(host: str, port: int) -> list[socket.socket]:
    """Returns a socket for each address of a host; an empty host means all interfaces. Raises OSError."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = dict.fromkeys((family, address) for family, _, _, _, address in infos)
    with contextlib.ExitStack() as opened:
        sockets = [
            opened.enter_context(bound(family, cast("tuple[str, int]", address)))
            for family, address in addresses
            if family != socket.AF_INET6 or socket.has_dualstack_ipv6()
        ]
        opened.pop_all()
    return sockets


def bound(family: int, address: tuple[str, int]) -> socket.socket:
    """Returns a socket that listens on an address. Raises OSError."""
    sock = socket.create_server(address, family=family, backlog=BACKLOG)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # accepted sockets inherit it
    sock.setblocking(False)
    return sock

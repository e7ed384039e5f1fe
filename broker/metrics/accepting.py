"""Accepts the connections of scrapers, one per EACH_S. Further connections wait in the kernel, at no cost to the event
loop.

Accepting a connection takes the event loop about fifty microseconds, and a client can easily open ten thousand a
second.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final, cast

from broker.accepting import Accepting, MakeProtocol
from broker.clock import Clock, pause

EACH_MS: Final = 2
"""Time between two connections: five hundred a second take at most a few hundredths of the loop's time. A single
connection doesn't wait."""

SENT_BYTES_PER_MS: Final = 100_000
"""Average rate of sending pages. At this rate, copying the bytes takes a few hundredths of the loop's time. Without it
scrapers that ask continuously would have it copy 13 MB five hundred times a second."""

LONGEST_PAUSE_MS: Final = 1_000
"""Maximum time that a health check waits for the pages of others."""

BACKLOG: Final = 128
"""Number of connections that may wait in the kernel, as many as are accepted in a quarter of a second. The kernel drops
further connections, and their clients retry.
"""

SEND_BUFFER_BYTES: Final = 128 << 10
"""Size of the send buffer. A page of ten thousand partitions has 13 MB; the kernel would accept half of it at once, and
copying it would block the event loop for milliseconds.
"""


class ScraperListener:
    """The sockets for scrapers, from `open` to `close`."""

    def __init__(self, make_protocol: MakeProtocol, clock: Clock) -> None:
        """`make_protocol` is called for each connection."""
        self._make_protocol = make_protocol
        self._clock = clock
        self._accepting: list[Accepting] = []
        self._sent_bytes = 0
        """The bytes that the next pause has to make up for."""

    async def open(self, host: str, port: int) -> int:
        """Binds all addresses of a host, accepts connections from now on, and returns the port. Raises OSError."""
        sockets = await listening(host, port)
        self._accepting = [Accepting(sock, self._make_protocol, self._clock, rest=self._rest) for sock in sockets]
        return int(sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stops accepting connections."""
        for accepting in self._accepting:
            accepting.close()

    def note_sent(self, size_bytes: int) -> None:
        """Makes the next connection wait for an answer of `size_bytes`."""
        self._sent_bytes = min(self._sent_bytes + size_bytes, LONGEST_PAUSE_MS * SENT_BYTES_PER_MS)

    async def _rest(self) -> None:
        await pause(self._clock, EACH_MS)
        while owed_ms := self._sent_bytes // SENT_BYTES_PER_MS:
            self._sent_bytes = 0
            await pause(self._clock, owed_ms)


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
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # inherited by accepted sockets
    sock.setblocking(False)
    return sock

"""Accepts the connections of scrapers, one each EACH_S: whoever comes more often waits in the kernel, which costs the
event loop nothing.

asyncio's own server accepts as fast as it can. A connection takes the loop some fifty microseconds, and ten thousand a
second are nothing for one who only connects.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Final, TypeAlias, cast

EACH_S: Final = 0.002
"""From one connection to the next: five hundred a second take a few hundredths of the loop at most. One that comes
alone does not wait."""

BACKLOG: Final = 128
"""Connections that wait in the kernel: a quarter of a second's worth. It drops those beyond, which come again."""

SEND_BUFFER_BYTES: Final = 128 << 10
"""A page of ten thousand partitions has 13 MB. The kernel would take half of it at once, and the loop would wait for
the milliseconds of the copy."""

MakeProtocol: TypeAlias = "Callable[[], asyncio.Protocol]"


class Door:
    """The sockets by which scrapers come, from `open` to `close`."""

    def __init__(self, make_protocol: MakeProtocol) -> None:
        """`make_protocol` is called for each connection."""
        self._make_protocol = make_protocol
        self._accepting: list[asyncio.Task[None]] = []

    async def open(self, host: str, port: int) -> int:
        """Binds all addresses of a host, accepts connections from now on, and returns the port. Raises OSError."""
        sockets = await listening(host, port)
        self._accepting = [self._begin(sock) for sock in sockets]
        return int(sockets[0].getsockname()[1])

    def _begin(self, sock: socket.socket) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(accept(sock, self._make_protocol))
        task.add_done_callback(lambda _: sock.close())
        return task

    def close(self) -> None:
        """Accepts no more."""
        for task in self._accepting:
            task.cancel()


async def accept(sock: socket.socket, make_protocol: MakeProtocol) -> None:
    """Accepts one connection after the other, until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(OSError):  # the peer has gone again, or there is no descriptor left for it
            accepted, _ = await loop.sock_accept(sock)
            await loop.connect_accepted_socket(make_protocol, accepted)
        await pause()


async def pause() -> None:
    """Returns when the next connection has its turn."""
    await asyncio.sleep(EACH_S)


async def listening(host: str, port: int) -> list[socket.socket]:
    """Returns a socket for each address of a host; for an empty one, of all interfaces. Raises OSError."""
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
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # those that it accepts inherit it
    sock.setblocking(False)
    return sock

"""Accepts the connections of a listening socket, one in each turn of the event loop.

asyncio's own server accepts all connections that wait in the kernel at once, a hundred or a thousand, and each costs
the loop some fifty microseconds. A client that only connects, again and again, would delay all requests by that much.
Here its connections wait in the kernel, and the requests of a turn come in between.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from broker.clock import Clock, next_turn, pause

NO_ROOM: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
"""Errors for which no connection can be accepted now. Any other error concerns a peer that has disconnected again."""

AGAIN_MS: Final = 100
"""The pause after an error of NO_ROOM."""

CLOSED_AT_ONCE: Final = 32
"""Maximum number of connections that are closed unserved in one turn: they take a fifth of a millisecond."""

MakeProtocol: TypeAlias = "Callable[[], asyncio.BaseProtocol]"


def accept_all(_: Sequence[object]) -> bool:
    """Lets every connection be served."""
    return True


class Accepting:
    """A listening socket whose connections are accepted, until `close`."""

    def __init__(
        self,
        sock: socket.socket,
        make_protocol: MakeProtocol,
        clock: Clock,
        *,
        accepts: Callable[[Sequence[object]], bool] = accept_all,
        rest: Callable[[], Awaitable[None]] = next_turn,
    ) -> None:
        """`takes` decides by a peer's address if its connection is served, or closed at once. `make_protocol` is called
        for each connection that is served, then `rest`; the next connection is accepted when `rest` has returned.
        `sock` must be non-blocking.
        """
        self._sock = sock
        self._make_protocol = make_protocol
        self._clock = clock
        self._accepts = accepts
        self._rest = rest
        self._is_closed = False
        self._is_connecting = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Accepts no more connections: the kernel rejects waiting and new clients."""
        self._is_closed = True
        if not self._is_connecting:  # uvloop would close the new connection's transport, and not tell its protocol
            self._task.cancel()
        # asyncio itself would do so a turn later, when the descriptor may belong to another file.
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    async def _run(self) -> None:
        while not self._is_closed:
            try:
                await self._accept()
            except OSError as error:
                if error.errno in NO_ROOM:
                    await pause(self._clock, AGAIN_MS)
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a connection could not be accepted", "exception": error}
                )
            await self._rest()

    async def _accept(self) -> None:
        """Serves the next connection, and closes the connections before it that are not served. Raises OSError."""
        loop = asyncio.get_running_loop()
        accepted, address = await loop.sock_accept(self._sock)
        closed = 0
        while not self._accepts(address):
            accepted.close()
            closed += 1
            if closed == CLOSED_AT_ONCE:
                return
            accepted, address = self._sock.accept()
        accepted.setblocking(False)
        self._is_connecting = True
        try:
            transport, _ = await loop.connect_accepted_socket(self._make_protocol, accepted)
        except BaseException:
            accepted.close()
            raise
        finally:
            self._is_connecting = False
        if self._is_closed:
            transport.abort()

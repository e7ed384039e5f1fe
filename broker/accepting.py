"""Accepts the connections of a listening socket, one in a turn of the event loop.

asyncio's own server takes all that wait in the kernel at once, a hundred or a thousand, and each costs the loop some
fifty microseconds. Whoever only connects, again and again, would hold up everybody's requests by that much; here they
wait in the kernel, and the requests of a turn come in between.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

NO_ROOM: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
"""Nobody can be accepted for now. Any other error is that of a peer that has gone again."""

AGAIN_S: Final = 0.1
"""How long after that it is tried again."""

CLOSED_AT_ONCE: Final = 32
"""The most that are closed unserved in one turn, which takes them a fifth of a millisecond."""

MakeProtocol: TypeAlias = "Callable[[], asyncio.BaseProtocol]"


async def one_turn() -> None:
    """Returns when all that was ready has been done."""
    await asyncio.sleep(0)


async def pause(seconds: float) -> None:
    """Returns when it is time to try again."""
    await asyncio.sleep(seconds)


def everybody(_: Sequence[object]) -> bool:
    """Whoever comes is served."""
    return True


class Accepting:
    """A listening socket whose connections are accepted from now on, until `close`."""

    def __init__(
        self,
        sock: socket.socket,
        make_protocol: MakeProtocol,
        *,
        takes: Callable[[Sequence[object]], bool] = everybody,
        rest: Callable[[], Awaitable[None]] = one_turn,
    ) -> None:
        """`takes` says of a peer's address whether its connection is served, or closed at once. `make_protocol` is
        called for each that is, and `rest` after it: the next one comes when it has returned. `sock` does not block."""
        self._sock = sock
        self._make_protocol = make_protocol
        self._takes = takes
        self._rest = rest
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Accepts no more: the kernel refuses who waits, and who comes."""
        self._task.cancel()
        # asyncio itself would do so a turn later, when the descriptor may be another's.
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._accept()
            except OSError as error:
                if error.errno in NO_ROOM:
                    await pause(AGAIN_S)
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a connection could not be accepted", "exception": error}
                )
            await self._rest()

    async def _accept(self) -> None:
        """Serves the next connection, and closes those before it that are not served. Raises OSError."""
        loop = asyncio.get_running_loop()
        accepted, address = await loop.sock_accept(self._sock)
        closed = 0
        while not self._takes(address):
            accepted.close()
            closed += 1
            if closed == CLOSED_AT_ONCE:
                return
            accepted, address = self._sock.accept()
        accepted.setblocking(False)
        try:
            await loop.connect_accepted_socket(self._make_protocol, accepted)
        except BaseException:
            accepted.close()
            raise

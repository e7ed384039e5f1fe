"""A listening address and its connections.

All connections read into one buffer, since a read is handled before the next one starts; an idle connection therefore
holds no buffer at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from broker.clock import Clock
from broker.network.admission import Admission
from broker.network.connection import Answer, ServerConnection
from broker.network.request_memory import RequestMemory
from broker.requests.context import Context, Sent


class Listener:
    """One listening address: its name, who answers what comes in by it, the way out, its connections."""

    def __init__(
        self,
        name: str,
        answer: Callable[[ServerConnection, memoryview], Answer],
        finish: Callable[[Context, Sent], Sent],
        *,
        clock: Clock,
        max_request_bytes: int,
        admission: Admission,
        memory: RequestMemory,
    ) -> None:
        self.name = name
        self.answer = answer
        self.finish = finish
        self.clock = clock
        self.max_request_bytes = max_request_bytes
        self.admission = admission
        self.memory = memory
        self.connections: set[ServerConnection] = set()
        self._empty = asyncio.Event()

    def connection(self) -> asyncio.BufferedProtocol:
        """The protocol factory for uvloop's `create_server`."""
        return cast(asyncio.BufferedProtocol, ServerConnection(self))

    def forget(self, connection: ServerConnection) -> None:
        """A connection is closed."""
        self.connections.remove(connection)
        self.admission.release(connection)
        if not self.connections:
            self._empty.set()

    def close_idle(self) -> None:
        """Closes the connections on which nothing came since the last call (connections.max.idle.ms)."""
        for connection in tuple(self.connections):
            connection.close_if_idle()

    def close_stalled(self, now_ms: int, timeout_ms: int) -> None:
        """Closes the connections that hold memory and have brought nothing for so long (see stalls.py)."""
        for connection in tuple(self.connections):
            connection.close_if_stalled(now_ms, timeout_ms)

    def close_all(self) -> None:
        """Closes every connection once its answers have gone out."""
        for connection in tuple(self.connections):
            connection.close()

    async def emptied(self) -> None:
        """Waits until no connection is left."""
        while self.connections:
            self._empty.clear()
            await self._empty.wait()

    def abort_all(self) -> None:
        """Closes every connection now, whatever is still to be sent."""
        for connection in tuple(self.connections):
            connection.transport.abort()

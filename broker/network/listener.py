"""A listening address and its connections.

All connections read into one buffer, because a read is handled before the next starts; an idle connection therefore
holds no buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.clock import Clock
from broker.network.admission import Admission
from broker.network.connection_lines import ConnectionLines
from broker.network.connection_view import ConnectionView
from broker.network.request_memory import RequestMemory
from broker.network.stalls import close_if_stalled
from broker.network.unauthenticated import UnauthenticatedConnections
from broker.network.unread import UnreadAnswers
from broker.request.context import AnswerBuffers, ClientConnection, Context
from broker.request.pending import Answer


class Listener:
    """One listening address: its name, its connections, and the functions that answer their requests and finish the
    answers."""

    def __init__(
        self,
        name: str,
        answer: Callable[[ClientConnection, memoryview], Answer],
        finish: Callable[[Context, AnswerBuffers], AnswerBuffers],
        *,
        clock: Clock,
        max_request_bytes: int,
        admission: Admission,
        memory: RequestMemory,
        unread: UnreadAnswers,
        lines: ConnectionLines,
        unauthenticated: UnauthenticatedConnections | None = None,
    ) -> None:
        """`unauthenticated` has the connections that must authenticate or complete the TLS handshake first; None if
        they need neither."""
        self.name = name
        self.answer = answer
        self.finish = finish
        self.clock = clock
        self.max_request_bytes = max_request_bytes
        self.admission = admission
        self.memory = memory
        self.unread = unread
        self.lines = lines
        self.unauthenticated = unauthenticated
        self.connections: set[ConnectionView] = set()
        self._empty = asyncio.Event()

    def linger(self, connection: ConnectionView, reason: str) -> None:
        """Closes a connection after its last answer. If clients authenticate, they have a moment to read it."""
        if self.unauthenticated is not None:
            self.unauthenticated.linger(connection, reason)
        else:
            self.lines.closed(connection, reason)
            connection.close()

    def forget(self, connection: ConnectionView, error: Exception | None) -> None:
        """Removes a connection that is closed, by its peer, by this broker or by an error."""
        self.lines.lost(connection, error)
        self.connections.remove(connection)
        self.admission.release(connection)
        if not self.connections:
            self._empty.set()

    def close_idle(self) -> None:
        """Closes the connections on which nothing came since the last call (connections.max.idle.ms)."""
        for connection in tuple(self.connections):
            connection.close_if_idle()

    def close_stalled(self, now_ms: int, timeout_ms: int) -> None:
        """Closes the connections that hold memory without progress for `timeout_ms` (see stalls.py)."""
        for connection in tuple(self.connections):
            close_if_stalled(connection, self.lines, now_ms, timeout_ms)

    def close_all(self) -> None:
        """Closes every connection once its answers are sent."""
        for connection in tuple(self.connections):
            connection.close()

    async def emptied(self) -> None:
        """Waits until no connection is left."""
        while self.connections:
            self._empty.clear()
            await self._empty.wait()

    def abort_all(self) -> None:
        """Closes every connection now, without waiting for its answers to be sent."""
        for connection in tuple(self.connections):
            connection.transport.abort()

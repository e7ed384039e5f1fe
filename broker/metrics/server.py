"""The listener of metrics and health. Whatever its clients do, they take very little from the broker's clients.

`accepting.py` limits the rate of connections, and MAX_CONNECTIONS their number. A further connection replaces the
oldest that has not sent its request, or the oldest of an address with too many; otherwise it is closed. Each has a
timeout for its request, and for reading its answer. Nothing is read after a request's headers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from broker.clock import Clock, Timer
from broker.logging import get_logger
from broker.metrics.accepting import ScraperListener
from broker.metrics.http import BadRequest, HttpRequest, HttpResponse, encoded, parse, plain
from broker.request.log_limiter import LogLimiter

MAX_CONNECTIONS: Final = 16
"""Maximum number of connections, for a few scrapers and health checks. Each may hold a page of metrics in memory, which
connections share.
"""

MAX_UNREAD_BYTES: Final = 64 << 20
"""Maximum memory of pages that clients have not read yet. A client that requests page after page could hold each for
ANSWER_WITHIN_MS, and a page of ten thousand partitions has 13 MB.
"""

REQUEST_WITHIN_MS: Final = 5_000
ANSWER_WITHIN_MS: Final = 10_000
"""Time in which a client must read its answer: Prometheus' default timeout of a scrape."""

Page: TypeAlias = "Callable[[HttpRequest], Awaitable[HttpResponse]]"
Body: TypeAlias = "Sequence[bytes]"

logger = get_logger(__name__)


class MetricsServer:
    """Serves pages by path, from `listen` to `close`."""

    def __init__(self, pages: Mapping[str, Page], clock: Clock) -> None:
        self.clock = clock
        self.connections: dict[MetricsConnection, None] = {}
        """The connections in order of arrival."""
        self.unread: dict[MetricsConnection, Body] = {}
        """The answers that are not fully read, in the order in which they were sent."""
        self.faults = LogLimiter()
        self._pages = pages
        self._listener = ScraperListener(lambda: MetricsConnection(self), clock)

    async def listen(self, host: str, port: int) -> int:
        """Binds the address, serves it from now on, and returns its port. Raises OSError."""
        return await self._listener.open(host, port)

    def close(self) -> None:
        """Stops serving."""
        self._listener.close()
        for connection in tuple(self.connections):
            connection.abort()

    def admit(self, connection: MetricsConnection) -> bool:
        """Registers a connection; returns False if there are too many."""
        if len(self.connections) >= MAX_CONNECTIONS:
            other = self._dispensable(connection.ip)
            if other is None:
                return False
            self._cut_off(other)
        self.connections[connection] = None
        return True

    def _dispensable(self, ip: str) -> MetricsConnection | None:
        """Returns the connection that a new connection of this address replaces; None if there is none. It is the
        oldest without a request, of the address with the most connections. If all have sent their requests, it is
        the oldest of an address with at least two more than the new connection's.
        """
        counts = Counter(other.ip for other in self.connections)
        idle = [other for other in self.connections if not other.has_request]
        others = idle or [other for other in self.connections if counts[other.ip] > counts[ip] + 1]
        return max(others, key=lambda other: counts[other.ip], default=None)

    def hold(self, connection: MetricsConnection, body: Body) -> None:
        """Records the answer of a connection. If unread answers exceed the limit, closes the oldest connections."""
        self.unread[connection] = body
        self._listener.note_sent(sum(map(len, body)))
        while unread_bytes(self.unread.values()) > MAX_UNREAD_BYTES:
            oldest = next(iter(self.unread))
            if self.unread[oldest] is body:
                return  # a single page may exceed the limit
            self._cut_off(oldest)

    def _cut_off(self, connection: MetricsConnection) -> None:
        self.forget(connection)
        connection.abort()

    def forget(self, connection: MetricsConnection) -> None:
        """Removes a connection that has ended or is being closed."""
        self.connections.pop(connection, None)
        self.unread.pop(connection, None)

    async def answer(self, request: HttpRequest, ip: str) -> HttpResponse:
        """Returns the page that a request names, or the error."""
        page = self._pages.get(request.path)
        if page is None:
            return plain(404, f"not found; available: {', '.join(self._pages)}")
        try:
            return await page(request)
        except Exception as error:
            if self.faults.allows(ip):
                logger.error("a page was not generated", path=request.path, exc_info=error)
            return plain(500, "the broker failed to make this page; see its log")


def unread_bytes(bodies: Iterable[Body]) -> int:
    """Returns the memory of answers; a page that several connections share counts once."""
    distinct = {id(body): body for body in bodies}
    return sum(sum(map(len, body)) for body in distinct.values())


class MetricsConnection(asyncio.Protocol):
    """The connection of a scraper."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)  # set before any other method is called
        self._received = bytearray()
        self._timer: Timer | None = None
        self._answering: asyncio.Task[None] | None = None
        self.ip = "unknown"
        self.has_request = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.ip = str(peer[0]) if peer else "unknown"
        if self._server.admit(self):
            self._timer = self._server.clock.call_after(REQUEST_WITHIN_MS, self.abort)
        else:
            self.has_request = True  # the rest is not read
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.has_request:
            return  # a second request, on a connection that is about to be closed
        self._received += data
        try:
            request = parse(self._received)
        except BadRequest as error:
            self._begin()
            self._send(error.response)
            return
        if request is not None:
            self._begin()
            self._answering = asyncio.get_running_loop().create_task(self._answer(request))

    def _begin(self) -> None:
        """Starts the answer after the request has arrived, with its timeout."""
        self.has_request = True
        self._received.clear()
        self._transport.pause_reading()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._server.clock.call_after(ANSWER_WITHIN_MS, self.abort)

    async def _answer(self, request: HttpRequest) -> None:
        self._send(await self._server.answer(request, self.ip), is_head=request.is_head)

    def _send(self, response: HttpResponse, *, is_head: bool = False) -> None:
        if not self._transport.is_closing():
            if not is_head:
                self._server.hold(self, response.body)
            self._transport.writelines(encoded(response, is_head=is_head))
            self._transport.resume_reading()  # otherwise the end of the connection would not be noticed
            self._transport.close()

    def abort(self) -> None:
        """Closes at once, and drops unsent bytes."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()

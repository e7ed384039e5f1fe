"""The listener of metrics and health. Its clients cost the broker's clients next to nothing, whatever they do.

Connections are accepted no faster than in `accepting.py`. At most MAX_CONNECTIONS are open; another replaces the oldest
that has not sent its request, or the oldest of an address that has more than its part, or is closed. Each has a timeout
for its request, and for reading its answer. No request is read beyond its headers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from broker.clock import Clock, Timer
from broker.exchange.log_limiter import LogLimiter
from broker.logging import get_logger
from broker.metrics.accepting import Door
from broker.metrics.http import BadRequest, HttpRequest, HttpResponse, encoded, parse, plain

MAX_CONNECTIONS: Final = 16
"""A few scrapers, and health checks. Each may hold a page of metrics, in memory that others share."""

MAX_UNREAD_BYTES: Final = 64 << 20
"""Maximum memory of pages that clients have not read. A client that asks for one page after the other would have each
held for ANSWER_WITHIN_MS, and a page of ten thousand partitions has 13 MB."""

REQUEST_WITHIN_MS: Final = 5_000
ANSWER_WITHIN_MS: Final = 10_000
"""Prometheus' default timeout of a scrape is ten seconds."""

Page: TypeAlias = "Callable[[HttpRequest], Awaitable[HttpResponse]]"
Body: TypeAlias = "Sequence[bytes]"

logger = get_logger("broker.metrics")


class MetricsServer:
    """Serves pages by their paths, from `listen` to `close`."""

    def __init__(self, pages: Mapping[str, Page], clock: Clock) -> None:
        self.clock = clock
        self.connections: dict[MetricsConnection, None] = {}
        """The connections in order of arrival."""
        self.unread: dict[MetricsConnection, Body] = {}
        """The answers that are not fully read, in the order in which they were sent."""
        self.faults = LogLimiter()
        self._pages = pages
        self._door = Door(lambda: MetricsConnection(self))

    async def listen(self, host: str, port: int) -> int:
        """Binds the address, serves it from now on, and returns its port. Raises OSError."""
        return await self._door.open(host, port)

    def close(self) -> None:
        """Stops serving."""
        self._door.close()
        for connection in tuple(self.connections):
            connection.abort()

    def admit(self, connection: MetricsConnection) -> bool:
        """Counts a connection; returns False if there is no place for it."""
        if len(self.connections) >= MAX_CONNECTIONS:
            other = self._dispensable(connection.ip)
            if other is None:
                return False
            self._cut_off(other)
        self.connections[connection] = None
        return True

    def _dispensable(self, ip: str) -> MetricsConnection | None:
        """Returns the connection that a new one of this address replaces: of the address with most connections, the
        oldest without a request; if all have sent theirs, the oldest of an address with two more than this one. None if
        there is none."""
        counts = Counter(other.ip for other in self.connections)
        idle = [other for other in self.connections if not other.has_request]
        others = idle or [other for other in self.connections if counts[other.ip] > counts[ip] + 1]
        return max(others, key=lambda other: counts[other.ip], default=None)

    def hold(self, connection: MetricsConnection, body: Body) -> None:
        """Records an answer to a connection. If unread answers exceed the limit, the oldest connections are cut off."""
        self.unread[connection] = body
        self._door.note_sent(sum(map(len, body)))
        while unread_bytes(self.unread.values()) > MAX_UNREAD_BYTES:
            oldest = next(iter(self.unread))
            if self.unread[oldest] is body:
                return  # one page may be larger than the limit
            self._cut_off(oldest)

    def _cut_off(self, connection: MetricsConnection) -> None:
        self.forget(connection)
        connection.abort()

    def forget(self, connection: MetricsConnection) -> None:
        """Removes a connection that has ended, or is ended."""
        self.connections.pop(connection, None)
        self.unread.pop(connection, None)

    async def answer(self, request: HttpRequest, ip: str) -> HttpResponse:
        """Returns the page that a request names, or the error."""
        page = self._pages.get(request.path)
        if page is None:
            return plain(404, f"not here; here are {', '.join(self._pages)}")
        try:
            return await page(request)
        except Exception as error:
            if self.faults.allows(ip):
                logger.error("a page was not made", path=request.path, exc_info=error)
            return plain(500, "the broker failed to make this page; see its log")


def unread_bytes(bodies: Iterable[Body]) -> int:
    """Returns the memory of answers; a page that several connections share counts once."""
    distinct = {id(body): body for body in bodies}
    return sum(sum(map(len, body)) for body in distinct.values())


class MetricsConnection(asyncio.Protocol):
    """The connection of a scraper."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)  # set before anything else is called
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
            self.has_request = True  # nothing of it is read
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.has_request:
            return  # a second request on the connection, which will be closed
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
        """The request is here: from now on its answer has a time."""
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
            self._transport.resume_reading()  # else the peer's end would not be noticed
            self._transport.close()

    def abort(self) -> None:
        """Closes at once, whatever is still to be sent."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()

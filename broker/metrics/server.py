"""The listener of metrics and health. Whatever its clients do costs the broker's clients next to nothing.

At most MAX_CONNECTIONS are open; one more takes the place of the oldest that has not sent its request, or is closed.
Each has a time to send its request, and one to take its answer. No request is read further than its headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias, cast

from broker.clock import Clock, Timer
from broker.exchange.log_limiter import LogLimiter
from broker.logging import get_logger
from broker.metrics.http import BadRequest, HttpRequest, HttpResponse, encoded, parse, plain

MAX_CONNECTIONS: Final = 16
"""A few scrapers, and health checks. Each may hold a page of metrics, in memory that others share."""

REQUEST_WITHIN_MS: Final = 5_000
ANSWER_WITHIN_MS: Final = 10_000
"""Prometheus gives a scrape ten seconds unless told otherwise."""

BACKLOG: Final = 16

Page: TypeAlias = "Callable[[HttpRequest], Awaitable[HttpResponse]]"

log = get_logger("broker.metrics")


class MetricsServer:
    """Serves pages by their paths, from `listen` to `close`."""

    def __init__(self, pages: Mapping[str, Page], clock: Clock) -> None:
        self.clock = clock
        self.connections: dict[MetricsConnection, None] = {}
        """In the order in which they came."""
        self.faults = LogLimiter()
        self._pages = pages
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Binds the address, serves it from now on, and returns its port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: MetricsConnection(self), host or None, port, backlog=BACKLOG)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Serves nobody any more."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.connections):
            connection.abort()

    def admit(self, connection: MetricsConnection) -> bool:
        """Counts a connection; returns False where there is no place for it."""
        if len(self.connections) >= MAX_CONNECTIONS:
            idle = next((other for other in self.connections if not other.has_request), None)
            if idle is None:
                return False
            idle.abort()
            self.connections.pop(idle, None)
        self.connections[connection] = None
        return True

    async def answer(self, request: HttpRequest, ip: str) -> HttpResponse:
        """Returns the page that a request names, or the error."""
        page = self._pages.get(request.path)
        if page is None:
            return plain(404, f"not here; here are {', '.join(self._pages)}")
        try:
            return await page(request)
        except Exception as error:
            if self.faults.allows(ip):
                log.error("a page was not made", path=request.path, exc_info=error)
            return plain(500, "a fault of the broker's, which its log tells")


class MetricsConnection(asyncio.Protocol):
    """One scraper."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)  # set before anything else is called
        self._received = bytearray()
        self._timer: Timer | None = None
        self._answering: asyncio.Task[None] | None = None
        self.has_request = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
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
        peer = self._transport.get_extra_info("peername") or ("unknown",)
        self._send(await self._server.answer(request, str(peer[0])), is_head=request.is_head)

    def _send(self, response: HttpResponse, *, is_head: bool = False) -> None:
        if not self._transport.is_closing():
            self._transport.writelines(encoded(response, is_head=is_head))
            self._transport.resume_reading()  # else the peer's end would not be noticed
            self._transport.close()

    def abort(self) -> None:
        """Closes at once, whatever is still to be sent."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()

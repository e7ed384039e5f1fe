"""Connections to many brokers, opened when needed and again when lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from client.address import Address
from client.aio import Connection, connect
from client.clock import Clock, done_by, pause
from client.errors import ConnectionClosed, HandshakeFailed, PeerError, PeerUnavailable
from client.futures import retrieve
from client.settings import Settings
from protocol.versions import ANY_VERSION

R = TypeVar("R")
T = TypeVar("T")


class Peer:
    """Another broker, by its address, with at most one connection.

    A request is sent once. If it certainly wasn't sent, the connection is opened again, after a pause, until the
    request's timeout. Only the caller can decide if a request that may have been carried out can be repeated.
    """

    def __init__(self, address: Address, settings: Settings, clock: Clock, draw: Callable[[], float]) -> None:
        """`draw` returns random numbers from 0 up to 1."""
        self.address = address
        self._settings = settings
        self._clock = clock
        self._draw = draw
        self._connection: Connection | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._dials = 0
        """Number of attempts to connect, successful or not, since the last answered request."""
        self._dialed_ms = 0
        self._is_closed = False

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and self._connection.is_ready

    @property
    def is_gone(self) -> bool:
        """True if the last connection was lost, or the first attempt to connect has failed, and no other attempt has
        succeeded."""
        was_dialed = self._dials > 0 or self._connection is not None
        return not self.is_connected and (self._dials > 1 or (was_dialed and self._dialing is None))

    async def send(
        self,
        request: object,
        response: type[R],
        *,
        timeout_ms: int,
        max_version: int = ANY_VERSION,
        max_dials: int | None = None,
    ) -> R:
        """Returns the answer, as `Connection.send` does; `timeout_ms` covers everything. With `max_dials`, gives up
        after so many failed attempts to connect, even if time is left.

        Raises the errors of `Connection.send` and `connect`.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        dials = 0
        while True:
            connection = await self._ready(deadline_ms, timeout_ms, max_dials)
            left_ms = max(deadline_ms - self._clock.monotonic_ms(), 0)
            try:
                answer = await connection.send(request, response, timeout_ms=left_ms, max_version=max_version)
            except PeerUnavailable as error:
                dials += 1
                if error.sent or dials == max_dials:
                    raise
                continue
            self._dials = 0
            return answer

    async def tell(self, request: object, *, timeout_ms: int, max_version: int = ANY_VERSION) -> None:
        """Sends a request that has no answer, as `Connection.tell` does."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        connection = await self._ready(deadline_ms, timeout_ms, None)
        left_ms = max(deadline_ms - self._clock.monotonic_ms(), 0)
        await connection.tell(request, timeout_ms=left_ms, max_version=max_version)

    async def connection(self, *, timeout_ms: int) -> Connection:
        """Returns the connection, opened if needed, for callers that need the peer's versions."""
        return await self._ready(self._clock.monotonic_ms() + timeout_ms, timeout_ms, None)

    async def close(self) -> None:
        """Closes for good; unanswered requests end with ConnectionClosed."""
        self._is_closed = True
        if self._dialing is not None:
            self._dialing.cancel()
            await asyncio.wait([self._dialing])
        if self._connection is not None:
            await self._connection.close()

    def abort(self) -> None:
        """Closes for good, at once."""
        self._is_closed = True
        if self._dialing is not None:
            self._dialing.cancel()
        if self._connection is not None:
            self._connection.abort()

    async def _ready(self, deadline_ms: int, timeout_ms: int, max_dials: int | None) -> Connection:
        """Returns the connection, or opens it; all waiting callers share it."""
        failures = 0
        reason = "no connection"
        while not self._is_closed:
            if (connection := self._usable()) is not None:
                return connection
            dialing = self._dialing
            if dialing is None:
                dialing = self._dialing = asyncio.get_running_loop().create_task(self._dial())
                dialing.add_done_callback(retrieve)  # the callers that waited may have given up
            if not await done_by(self._clock, deadline_ms, dialing):
                raise PeerUnavailable(str(self.address), f"{reason} within {timeout_ms} ms")
            error = None if dialing.cancelled() else dialing.exception()
            if error is None:
                continue
            if not isinstance(error, PeerError) or isinstance(error, HandshakeFailed):
                raise error
            failures += 1
            if failures == max_dials:
                raise PeerUnavailable(str(self.address), error.message) from error
            reason = f"{error.message}; no other connection"
        raise ConnectionClosed(str(self.address), "this side has closed its connections")

    def _usable(self) -> Connection | None:
        connection = self._connection
        if connection is None or not connection.is_ready:
            return None
        now_ms = self._clock.monotonic_ms()
        is_over = connection.renew_ms is not None and now_ms >= connection.renew_ms
        if connection.is_idle and (is_over or now_ms - connection.last_used_ms > self._settings.max_idle_ms):
            connection.abort()
            self._dials = 0
            return None
        return connection

    async def _dial(self) -> None:
        """Opens a connection, after the pause that is due."""
        try:
            if self._dials:
                delay_ms = self._settings.backoff.delay_ms(self._dials, self._draw())
                await pause(self._clock, self._dialed_ms + delay_ms - self._clock.monotonic_ms())
            self._dials += 1
            self._dialed_ms = self._clock.monotonic_ms()
            self._connection = await connect(self.address, self._settings, self._clock)
        finally:
            self._dialing = None


class Peers:
    """The brokers of a cluster by node id, and the brokers to ask first."""

    def __init__(
        self, settings: Settings, clock: Clock, draw: Callable[[], float], bootstrap: Sequence[Address] = ()
    ) -> None:
        self.clock = clock
        self._settings = settings
        self._draw = draw
        self.bootstrap = [self._peer(address) for address in dict.fromkeys(bootstrap)]
        self._nodes: dict[int, Peer] = {}
        self._is_closed = False

    def place(self, addresses: Mapping[int, Address]) -> None:
        """Sets the addresses of all nodes. Closes connections to nodes that are gone, or have a new address."""
        for node, peer in tuple(self._nodes.items()):
            if addresses.get(node) != peer.address:
                self._nodes.pop(node).abort()
        for node, address in addresses.items():
            if node not in self._nodes and not self._is_closed:
                self._nodes[node] = self._peer(address)

    def node(self, node: int) -> Peer:
        """Returns the broker with this id. Raises PeerUnavailable if its address is unknown."""
        peer = self._nodes.get(node)
        if peer is None:
            raise PeerUnavailable(f"node {node}", "has no address")
        return peer

    async def together(self, awaitables: Iterable[Awaitable[T]]) -> list[T]:
        """Returns the results of all awaitables, which run at the same time."""
        return list(await asyncio.gather(*awaitables))

    async def pause(self, delay_ms: int) -> None:
        """Waits for `delay_ms`."""
        await pause(self.clock, delay_ms)

    async def close(self) -> None:
        """Closes all connections for good."""
        self._is_closed = True
        await asyncio.gather(*(peer.close() for peer in (*self.bootstrap, *self._nodes.values())))

    def _peer(self, address: Address) -> Peer:
        return Peer(address, self._settings, self.clock, self._draw)

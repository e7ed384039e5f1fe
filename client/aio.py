"""The shell of `client.connection` on an event loop: a socket, futures, and one timer.

The caller of `send` owns its answer. The record batches in it are views of a buffer that nothing else writes to: the
frame's own buffer if it arrived in pieces, as large frames do, or a copy of a small frame.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final, TypeVar, cast

from client.address import Address
from client.clock import Clock, Timer, done_by
from client.errors import PeerError, PeerUnavailable
from client.futures import retrieve
from client.pending import Pending, RequestOutcome
from client.settings import Settings
from client.states import ConnectionState
from client.traffic import PeerTraffic
from client.versions import PeerVersions
from protocol.errors import ProtocolError
from protocol.versions import ANY_VERSION

R = TypeVar("R")

RECEIVE_BUFFER_BYTES: Final = 64 * 1024
"""Size of the receive buffer: smaller answers usually arrive whole. The rest of a larger answer is read into a buffer
of its own, so a larger receive buffer would mean more copying, not less.
"""

WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024
"""Bytes of requests that wait for the kernel; above this, no more requests are encoded."""

SESSION_SHARE: Final = 0.85
"""Share of a session after which a new connection replaces it; Kafka's clients reauthenticate at this share or later
(KIP-368).
"""

LINGER_MS: Final = 1000
"""Time that a closed connection has to send its earlier requests."""


def _reason(error: Exception) -> str:
    """Returns the reason why a connection failed, in the system's words instead of asyncio's."""
    return os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else str(error)


async def connect(address: Address, settings: Settings, clock: Clock, *, timeout_ms: int | None = None) -> Connection:
    """Returns a connection that is ready for requests. `timeout_ms` is `settings.connect_timeout_ms` by default.

    Raises PeerUnavailable if there is no connection in time, HandshakeFailed if the peer rejects it, ProtocolError if
    the peer uses another protocol.
    """
    allowed_ms = settings.connect_timeout_ms if timeout_ms is None else timeout_ms
    deadline_ms = clock.monotonic_ms() + allowed_ms
    connection = Connection(address, settings, clock, deadline_ms)
    dialing = asyncio.ensure_future(_dial(address, settings, lambda: connection))
    dialing.add_done_callback(retrieve)  # the waiter may be cancelled in the turn in which it fails
    try:
        if not await done_by(clock, deadline_ms, dialing):
            raise PeerUnavailable(str(address), f"no connection within {allowed_ms} ms")
        dialing.result()
        await connection.ready()
    except (OSError, ValueError, OverflowError) as error:
        reason = _reason(error) or "the peer closed the connection"  # during a TLS handshake
        raise PeerUnavailable(str(address), f"cannot be connected to: {reason}") from error
    finally:
        if not dialing.done():
            dialing.cancel()
        if not connection.is_ready:
            connection.abort()
    return connection


async def _dial(address: Address, settings: Settings, protocol: Callable[[], Connection]) -> None:
    """Opens a stream to the first of the host's addresses that answers. Raises OSError, or ValueError or OverflowError
    for an impossible host or port."""
    tls = settings.tls
    name = None if tls is None else address.host if tls.check_hostname else ""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(protocol, address.host, address.port, ssl=tls, server_hostname=name)
    stream: socket.socket | None = transport.get_extra_info("socket")
    if stream is not None:  # a simulated network has none
        # Finds a peer whose machine is gone without closing.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class Connection(asyncio.BufferedProtocol):
    """A connection to another broker, opened by `connect`. It is never reopened once it has ended."""

    def __init__(self, address: Address, settings: Settings, clock: Clock, deadline_ms: int) -> None:
        """`deadline_ms` is the time by which the connection must be ready."""
        self.address = address
        self.last_used_ms = clock.monotonic_ms()
        """The time of the last request."""
        self.renew_ms: int | None = None
        """The time at which a new connection should replace it, because the peer will end its session."""
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._deadline_ms = deadline_ms
        self._client = settings.connection(address)
        self._traffic = PeerTraffic() if settings.traffic is None else settings.traffic
        self._transport: asyncio.Transport | None = None
        self._buffer = memoryview(b"")
        self._futures: dict[Pending, asyncio.Future[object]] = {}
        self._settled = self._loop.create_future()
        """A future that is done when the connection is ready, or has failed."""
        self._lost = self._loop.create_future()
        """A future that is done when the socket is closed."""
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._flush_is_due = False
        self._is_lingering = False
        """True while requests that were made before `close` may still be sent."""

    @property
    def is_ready(self) -> bool:
        """True if requests can be sent."""
        return self._client.state is ConnectionState.READY

    @property
    def is_idle(self) -> bool:
        """True if no answer is awaited."""
        return self._client.idle

    @property
    def error(self) -> PeerError | ProtocolError | None:
        """The error that ended the connection."""
        return self._client.error

    @property
    def versions(self) -> PeerVersions:
        """The versions that the peer supports, and the features of its cluster."""
        versions = self._client.versions
        assert versions is not None, "a connection that is ready has negotiated"
        return versions

    async def send(self, request: object, response: type[R], *, timeout_ms: int, max_version: int = ANY_VERSION) -> R:
        """Sends a request in the highest version that both sides support, up to `max_version`, and returns its answer,
        of class `response`.

        Waits if too many requests are in flight. Raises RequestTimedOut, PeerUnavailable, ConnectionClosed,
        UnsupportedVersion, or ProtocolError for a malformed answer. A cancelled caller doesn't affect the connection.
        """
        answer = await self._request(request, response, timeout_ms, max_version)
        assert isinstance(answer, response)
        return answer

    async def tell(self, request: object, *, timeout_ms: int, max_version: int = ANY_VERSION) -> None:
        """Sends a request that has no answer, a Produce with acks=0. Returns once it is sent."""
        await self._request(request, None, timeout_ms, max_version)

    async def close(self) -> None:
        """Closes the connection. Unanswered requests end with ConnectionClosed. Returns when the socket is closed."""
        transport = self._transport
        if transport is None:
            self.abort()
            return
        self._flush()
        self._is_lingering = True
        self._end(self._client.close())
        transport.close()
        if not await done_by(self._clock, self._clock.monotonic_ms() + LINGER_MS, self._lost):
            transport.abort()
            await asyncio.wait([self._lost])

    def abort(self) -> None:
        """Closes the connection at once, and drops unsent requests."""
        self._end(self._client.close())
        if self._transport is not None:
            self._transport.abort()

    async def ready(self) -> None:
        """Waits for the handshake; raises the error that ended it."""
        await asyncio.wait([self._settled])
        if self._client.error is not None:
            raise self._client.error

    # asyncio.BufferedProtocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # a stream's transport both reads and writes
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self._client.connected(self._clock.monotonic_ms(), self._deadline_ms)
        self._go_on([])

    def get_buffer(self, sizehint: int) -> memoryview:
        target = self._client.target()
        return self._buffer if target is None else target

    def buffer_updated(self, nbytes: int) -> None:
        client, now_ms = self._client, self._clock.monotonic_ms()
        self._traffic.received_bytes += nbytes
        if client.target() is None:
            self._go_on(client.receive(self._buffer[:nbytes], now_ms))
        else:
            self._go_on(client.filled(nbytes, now_ms))

    def pause_writing(self) -> None:
        self._client.pause_writing()

    def resume_writing(self) -> None:
        self._go_on(self._client.resume_writing(self._clock.monotonic_ms()))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(self._client.lost(exc))
        self._lost.set_result(None)

    # After each step of the client.

    async def _request(self, request: object, response: type | None, timeout_ms: int, max_version: int) -> object:
        now_ms = self.last_used_ms = self._clock.monotonic_ms()
        pending, outcomes = self._client.request(
            request, response, now_ms=now_ms, timeout_ms=timeout_ms, max_version=max_version
        )
        self._traffic.requests += 1
        future = self._futures[pending] = self._loop.create_future()
        if self._client.unanswered > 1 and not outcomes:
            self._flush_soon()
            self._arm()
        else:
            self._go_on(outcomes)
        try:
            return await future
        finally:
            if self._futures.pop(pending, None) is not None:
                self._client.abandon(pending)

    def _go_on(self, outcomes: list[RequestOutcome]) -> None:
        self._settle(outcomes)
        state = self._client.state
        if state is ConnectionState.CLOSING or state is ConnectionState.CLOSED:
            self._end([])
            if self._transport is not None and not self._is_lingering:
                self._transport.abort()
            return
        if state is ConnectionState.READY and not self._settled.done():
            self._begin_session()
            self._settled.set_result(None)
        self._flush()
        self._arm()

    def _begin_session(self) -> None:
        session_ms = self._client.session_ms
        if session_ms is not None:
            self.renew_ms = self._clock.monotonic_ms() + int(session_ms * SESSION_SHARE)

    def _settle(self, outcomes: list[RequestOutcome]) -> None:
        for pending, answer, error in outcomes:
            future = self._futures.pop(pending, None)
            if future is None or future.done():
                continue
            if error is None:
                self._traffic.responses += 1
                future.set_result(answer)
            else:
                future.set_exception(error)

    def _end(self, outcomes: list[RequestOutcome]) -> None:
        """Completes the requests with their outcomes, after the connection has ended."""
        self._settle(outcomes)
        if not self._settled.done():
            self._settled.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush_soon(self) -> None:
        """Flushes all requests of this turn of the event loop together at its end, because a write costs more than a
        request.
        """
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        buffers = self._client.outgoing()
        if buffers and self._transport is not None and not self._transport.is_closing():
            self._traffic.sent_bytes += sum(map(len, buffers))
            self._transport.writelines(buffers)

    def _arm(self) -> None:
        """Sets the one timer for all deadlines to the next deadline, or leaves it if it fires earlier."""
        alarm_ms = self._client.alarm_ms
        if alarm_ms is None or (self._timer is not None and self._timer_ms <= alarm_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = alarm_ms
        left_ms = max(alarm_ms - self._clock.monotonic_ms(), 0)
        self._timer = self._clock.call_at(self._clock.now_ms() + left_ms, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._go_on(self._client.expire(self._clock.monotonic_ms()))

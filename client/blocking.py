"""The shell of `client.connection` on a blocking socket, for programs that send one request after another: importing
an event loop takes longer than most of them run."""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from client.address import Address
from client.connection import OutboundConnection
from client.errors import PeerUnavailable
from client.pending import RequestOutcome
from client.settings import Settings
from client.states import ConnectionState
from client.versions import PeerVersions
from protocol.versions import ANY_VERSION

R = TypeVar("R")
T = TypeVar("T")

NS_PER_MS: Final = 1_000_000
RECEIVE_BUFFER_BYTES: Final = 64 * 1024

MAX_IDLE_MS: Final = 60_000
"""Longest idle time after which a connection is used again. The command may have waited for the user to confirm, and
the broker may have closed the connection meanwhile."""


class PlainClock:
    """The machine's clock; waiting blocks the process."""

    def now_ms(self) -> int:
        return time.time_ns() // NS_PER_MS

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // NS_PER_MS

    def sleep(self, delay_ms: int) -> None:
        time.sleep(max(delay_ms, 0) / 1000)


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that waits for nothing but blocking peers. Raises RuntimeError if it needs a loop."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise RuntimeError("a command that awaits anything but a broker's answer must be declared concurrent")


class BlockingPeer:
    """A broker, by its address, with at most one connection."""

    def __init__(self, address: Address, settings: Settings, clock: PlainClock) -> None:
        self.address = address
        self._settings = settings
        self._clock = clock
        self._client: OutboundConnection | None = None
        self._stream: socket.socket | None = None
        self._buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self._used_ms = 0

    async def send(
        self,
        request: object,
        response: type[R],
        *,
        timeout_ms: int,
        max_version: int = ANY_VERSION,
        max_dials: int | None = None,
    ) -> R:
        """Does the same as `ask`, for callers of any shell. Connects at most once, whatever `max_dials` is."""
        return self.ask(request, response, timeout_ms=timeout_ms, max_version=max_version)

    async def tell(self, request: object, *, timeout_ms: int, max_version: int = ANY_VERSION) -> None:
        """Sends a request that has no answer. Raises the errors of `ask`."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self._request(request, None, timeout_ms, max_version)
        assert self._stream is not None, "there is a stream as long as there is a client"
        try:
            self._stream.settimeout(max(deadline_ms - self._clock.monotonic_ms(), 1) / 1000)
            self._flush()
        except OSError as error:
            self.close()
            raise PeerUnavailable(str(self.address), f"the connection is lost: {error}", sent=True) from error

    def ask(self, request: object, response: type[R], *, timeout_ms: int, max_version: int = ANY_VERSION) -> R:
        """Returns the answer, of class `response`. Raises the errors of `client.aio.Connection.send`."""
        answer = self._request(request, response, timeout_ms, max_version)
        assert isinstance(answer, response)
        return answer

    def versions(self, *, timeout_ms: int) -> PeerVersions:
        """Returns the versions that the broker supports. Raises PeerUnavailable, HandshakeFailed, ProtocolError."""
        now_ms = self._clock.monotonic_ms()
        versions = self._ready(now_ms, now_ms + timeout_ms).versions
        assert versions is not None, "a connection that is ready has negotiated"
        return versions

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._stream is not None:
            self._stream.close()
        self._stream = self._client = None

    def _request(self, request: object, response: type | None, timeout_ms: int, max_version: int) -> object:
        now_ms = self._clock.monotonic_ms()
        deadline_ms = now_ms + timeout_ms
        client = self._ready(now_ms, deadline_ms)
        now_ms = self._used_ms = self._clock.monotonic_ms()
        left_ms = max(deadline_ms - now_ms, 0)
        pending, outcomes = client.request(
            request, response, now_ms=now_ms, timeout_ms=left_ms, max_version=max_version
        )
        while True:
            for outcome in outcomes:
                if outcome.pending is pending:
                    if outcome.error is not None:
                        raise outcome.error
                    return outcome.response
            outcomes = self._step(client)

    def _ready(self, now_ms: int, deadline_ms: int) -> OutboundConnection:
        client = self._client
        if client is not None and client.state is ConnectionState.READY and now_ms - self._used_ms < MAX_IDLE_MS:
            return client
        self.close()
        return self._connect(now_ms, min(deadline_ms, now_ms + self._settings.connect_timeout_ms))

    def _connect(self, now_ms: int, deadline_ms: int) -> OutboundConnection:
        """Opens a connection, and negotiates and authenticates on it."""
        try:
            self._stream = self._dial((deadline_ms - now_ms) / 1000)
        except (OSError, ValueError, OverflowError) as error:  # ValueError, OverflowError: an invalid host or port
            reason = error.strerror if isinstance(error, ConnectionError) and error.strerror else error
            raise PeerUnavailable(str(self.address), f"cannot be connected to: {reason}") from error
        client = self._client = self._settings.connection(self.address)
        client.connected(self._clock.monotonic_ms(), deadline_ms)
        while client.state is not ConnectionState.READY:
            if client.error is not None:
                self.close()
                raise client.error
            self._step(client)
        return client

    def _dial(self, timeout_s: float) -> socket.socket:
        host = self.address.host
        # A name in bytes is looked up as it is; a name in text would import the tables of international names.
        name = host.encode() if host.isascii() else host
        stream = socket.create_connection((name, self.address.port), timeout_s)  # type: ignore[arg-type]  # see above
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if (tls := self._settings.tls) is None:
            return stream
        try:
            return tls.wrap_socket(stream, server_hostname=self.address.host if tls.check_hostname else None)
        except BaseException:
            stream.close()
            raise

    def _step(self, client: OutboundConnection) -> list[RequestOutcome]:
        """Writes pending bytes, then reads the next bytes or reports the timeout."""
        stream = self._stream
        assert stream is not None, "there is a stream as long as there is a client"
        now_ms = self._clock.monotonic_ms()
        alarm_ms = now_ms if client.alarm_ms is None else client.alarm_ms
        target = client.target()
        try:
            stream.settimeout(max(alarm_ms - now_ms, 1) / 1000)
            self._flush()
            count = stream.recv_into(self._buffer if target is None else target)
        except TimeoutError:
            return client.expire(self._clock.monotonic_ms())
        except OSError as error:
            return client.lost(error)
        now_ms = self._clock.monotonic_ms()
        if not count:
            return client.lost()
        return client.receive(self._buffer[:count], now_ms) if target is None else client.filled(count, now_ms)

    def _flush(self) -> None:
        if self._client is not None and self._stream is not None and (buffers := self._client.outgoing()):
            self._stream.sendall(b"".join(buffers))


class BlockingPeers:
    """The brokers of a cluster by node id, asked one at a time."""

    def __init__(self, settings: Settings, bootstrap: Sequence[Address] = ()) -> None:
        self.clock = PlainClock()
        self.bootstrap = [BlockingPeer(address, settings, self.clock) for address in bootstrap]
        self._settings = settings
        self._nodes: dict[int, BlockingPeer] = {}

    def place(self, addresses: Mapping[int, Address]) -> None:
        for node, address in addresses.items():
            if node not in self._nodes or self._nodes[node].address != address:
                self._nodes[node] = BlockingPeer(address, self._settings, self.clock)

    def node(self, node: int) -> BlockingPeer:
        return self._nodes[node]

    async def together(self, awaitables: Iterable[Awaitable[T]]) -> list[T]:
        waiting = list(awaitables)
        results: list[T] = []
        try:
            while waiting:
                results.append(await waiting.pop(0))
        finally:
            for awaitable in waiting:
                if isinstance(awaitable, Coroutine):
                    awaitable.close()  # an earlier one has failed
        return results

    async def pause(self, delay_ms: int) -> None:
        self.clock.sleep(delay_ms)

    async def close(self) -> None:
        for peer in (*self.bootstrap, *self._nodes.values()):
            peer.close()

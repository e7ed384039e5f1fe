"""Links to brokers over blocking sockets, for commands that send one request after another: importing an event loop
takes longer than most of them run. `protocol.client` implements the protocol, as it does on a loop."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from broker.peers.address import Address
from commands.client.clock import PlainClock
from commands.client.connecting import Destination
from protocol.client import OutboundConnection
from protocol.client_states import ConnectionState
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.peer_errors import PeerUnavailable
from protocol.pending import RequestOutcome
from protocol.schema import ANY_VERSION

R = TypeVar("R")
T = TypeVar("T")

SOFTWARE_NAME: Final = "odradek"
SOFTWARE_VERSION: Final = "unknown"

RECEIVE_BUFFER_BYTES: Final = 64 * 1024

MAX_IDLE_MS: Final = 60_000
"""Longest idle time after which a connection is used again. The command may have waited for the user to confirm, and
the broker may have closed the connection meanwhile."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that waits for nothing but blocking links. Raises RuntimeError if it needs a loop."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise RuntimeError("a command that awaits anything but a broker's answer must be declared concurrent")


class BlockingLink:
    """The way to one broker, with at most one connection."""

    def __init__(self, address: Address, destination: Destination, clock: PlainClock) -> None:
        self.address = address
        self._destination = destination
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
        """Returns the answer, of class `response`. Connects at most once, whatever `max_dials` is. Raises the errors of
        `broker.peers.Connection.send`."""
        answer = self._ask(request, response, timeout_ms, max_version)
        assert isinstance(answer, response)
        return answer

    async def tell(self, request: object, *, timeout_ms: int, max_version: int = ANY_VERSION) -> None:
        self._ask(request, None, timeout_ms, max_version)
        self._flush()

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._stream is not None:
            self._stream.close()
        self._stream = self._client = None

    def _ask(self, request: object, response: type | None, timeout_ms: int, max_version: int) -> object:
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
        return self._connect(now_ms, min(deadline_ms, now_ms + self._destination.connect_timeout_ms))

    def _connect(self, now_ms: int, deadline_ms: int) -> OutboundConnection:
        """Opens a connection, and negotiates and authenticates on it."""
        try:
            self._stream = self._dial((deadline_ms - now_ms) / 1000)
        except (OSError, ValueError, OverflowError) as error:  # the latter two: an impossible host or port
            raise PeerUnavailable(str(self.address), f"cannot be connected to: {error}") from error
        client = self._client = OutboundConnection(
            str(self.address),
            client_id=self._destination.client_id,
            hello=ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION),
            authenticators=self._destination.authenticators,
        )
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
        if (tls := self._destination.tls) is None:
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


class BlockingLinks:
    """Links that are used one at a time."""

    def __init__(self, destination: Destination) -> None:
        self.clock = PlainClock()
        self.bootstrap = [BlockingLink(address, destination, self.clock) for address in destination.bootstrap]
        self._destination = destination
        self._nodes: dict[int, BlockingLink] = {}

    def place(self, addresses: Mapping[int, Address]) -> None:
        for node, address in addresses.items():
            if node not in self._nodes or self._nodes[node].address != address:
                self._nodes[node] = BlockingLink(address, self._destination, self.clock)

    def node(self, node: int) -> BlockingLink:
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
        for link in (*self.bootstrap, *self._nodes.values()):
            link.close()

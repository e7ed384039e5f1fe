"""The listeners of a process: opened once requests can be answered, closed before everything else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from broker.accepting import Accepting, MakeProtocol
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.listeners import ListenerAddress
from broker.dispatch.answering import FrameAnswerer
from broker.network.accept_rate_limiter import AcceptRateLimiter
from broker.network.admission import Admission
from broker.network.blocked_addresses import BlockedAddresses
from broker.network.connection import ServerConnection
from broker.network.connection_lines import ConnectionLines
from broker.network.endpoints import advertised, bind, listen
from broker.network.listener import Listener
from broker.network.request_memory import RequestMemory
from broker.network.unauthenticated import UnauthenticatedConnections
from broker.network.unread import UnreadAnswers
from broker.request.context import ClientConnection
from broker.request.pending import Answer
from protocol.lazy import lazy
from storage.disk import Disk

if TYPE_CHECKING:
    from broker.metrics import endpoint
    from broker.metrics.endpoint import MetricsEndpoint
    from programs.run import securing
    from programs.run.securing import TlsDoor
else:  # with the first listener with TLS or SASL, and for metrics
    endpoint = lazy("broker.metrics.endpoint")
    securing = lazy("programs.run.securing")

AnswerFrame: TypeAlias = Callable[[ClientConnection, memoryview], Answer]

CLOSE_WITHIN_S = 5.0
"""Time for sending pending answers once the process stops; clients retry requests without an answer."""


class Bound(NamedTuple):
    """A bound socket, and its advertised address."""

    sock: socket.socket
    address: ListenerAddress


def bind_all(listeners: Sequence[ListenerAddress], config: BrokerConfig) -> list[Bound]:
    """Binds listeners first, so that a port in use is found early; connections are refused until `listen_all`. Raises
    OSError."""
    addresses = (*config.advertised, *config.advertised_controllers)
    bound = [bind(listener, config) for listener in listeners]
    return [Bound(sock, advertised(address, addresses)) for sock, address in bound]


def listen_all(bound: Iterable[Bound], config: BrokerConfig) -> None:
    """Starts to listen; the requests of clients wait until `Listening.open`. Raises OSError."""
    for sock, address in bound:
        listen(sock, address, config)


async def metrics_endpoint(
    config: BrokerConfig, clock: Clock, disk: Disk, *, is_broker: bool
) -> MetricsEndpoint | None:
    """Returns the endpoint that serves metrics and health from the start on, if it is configured. Raises OSError."""
    if config.metrics_address is None:
        return None
    metrics = endpoint.MetricsEndpoint(clock, disk, is_broker=is_broker)
    await metrics.listen(*config.metrics_address)
    return metrics


class Listening:
    """The listeners of a process for clients, brokers and controllers."""

    def __init__(self, clock: Clock, max_connections: int) -> None:
        """`max_connections` is the limit of open connections in the process."""
        self.listeners: list[Listener] = []
        self.tls_doors: list[TlsDoor] = []
        self._clock = clock
        self._max_connections = max_connections
        self._accepting: list[Accepting] = []
        self._closing = contextlib.ExitStack()
        """Callbacks that stop the listeners' background work."""
        self._limit_of_address: Callable[[str], float | None] | None = None

    def open(self, bound: Sequence[Bound], dispatcher: FrameAnswerer) -> None:
        """Accepts connections, whose requests the dispatcher answers. These listeners share the limits of connections
        and memory."""
        host = dispatcher.host
        config, lines = host.config, ConnectionLines(host.faults)
        admission = Admission(lambda: host.config, self._clock, lines, self._max_connections)
        admission.limit_of_address = self._limit_of_address
        blocked = BlockedAddresses(self._clock)
        self._closing.callback(blocked.close)
        limiter = AcceptRateLimiter(lambda: host.config, self._clock, lines, blocked.block)
        memory = RequestMemory(config.request_memory_bytes, config.request_memory_bytes_per_ip)
        unread = UnreadAnswers(config.odradek_unread_answers_max_bytes, lines)
        for sock, address in bound:
            answer, unauthenticated, tls = self._door(address, dispatcher, lines)
            listener = Listener(
                address.name,
                answer,
                host.interceptors.finish,
                clock=self._clock,
                max_request_bytes=config.socket_request_max_bytes,
                admission=admission,
                memory=memory,
                unread=unread,
                lines=lines,
                unauthenticated=unauthenticated,
            )
            self.listeners.append(listener)
            if tls is not None:
                self.tls_doors.append(tls)
            blocked.add(sock)
            self._accepting.append(Accepting(sock, _maker(listener, tls), self._clock, accepts=limiter.accepts))

    def limit_addresses(self, limit_of_address: Callable[[str], float | None] | None) -> None:
        """Sets the limit of new connections per second for an address; None for no limit."""
        self._limit_of_address = limit_of_address
        for listener in self.listeners:
            listener.admission.limit_of_address = limit_of_address

    def _door(
        self, address: ListenerAddress, dispatcher: FrameAnswerer, lines: ConnectionLines
    ) -> tuple[AnswerFrame, UnauthenticatedConnections | None, TlsDoor | None]:
        """Returns a listener's answering function, its unauthenticated connections, and its TLS."""
        if address.security_protocol == "PLAINTEXT":
            return dispatcher.answer, None, None
        return securing.secure(address, dispatcher, self._clock, lines, self._closing)

    def close(self) -> None:
        """Stops accepting connections, and closes each connection once its answers are sent."""
        self._closing.close()
        for accepting in self._accepting:
            accepting.close()
        for listener in self.listeners:
            listener.close_all()

    async def drained(self) -> None:
        """Waits until all connections are closed, at most for CLOSE_WITHIN_S; then aborts the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                for listener in self.listeners:
                    await listener.emptied()
        for listener in self.listeners:
            listener.abort_all()


def _maker(listener: Listener, tls: TlsDoor | None) -> MakeProtocol:
    """Returns the factory of an accepted connection's protocol, with asyncio's type."""
    if tls is None:
        return cast(MakeProtocol, lambda: ServerConnection(listener))
    return cast(MakeProtocol, lambda: tls.accepted(lambda: ServerConnection(listener)))

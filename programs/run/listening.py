"""The listeners of a process: opened once there is somebody to answer, closed before all else."""

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
from broker.exchange.context import ClientConnection
from broker.exchange.pending import Answer
from broker.network.admission import Admission
from broker.network.connection import ServerConnection
from broker.network.connection_lines import ConnectionLines
from broker.network.endpoints import advertised, bind, listen
from broker.network.listener import Listener
from broker.network.request_memory import RequestMemory
from broker.network.strangers import Strangers
from broker.network.surges import Surges
from broker.network.unheard import Unheard
from broker.network.unread import UnreadAnswers
from broker.requests.answering import FrameAnswerer

if TYPE_CHECKING:
    from programs.run.securing import TlsDoor

AnswerFrame: TypeAlias = Callable[[ClientConnection, memoryview], Answer]

CLOSE_WITHIN_S = 5.0
"""How long answers may take to go out once the process stops; clients retry the requests that got none."""


class Bound(NamedTuple):
    """A bound socket, and the address that clients are told of it."""

    sock: socket.socket
    address: ListenerAddress


def bind_all(listeners: Sequence[ListenerAddress], config: BrokerConfig) -> list[Bound]:
    """Binds listeners, so that a port in use costs nothing; connections are refused until `listen_all`. Raises
    OSError."""
    addresses = (*config.advertised, *config.advertised_controllers)
    bound = [bind(listener, config) for listener in listeners]
    return [Bound(sock, advertised(address, addresses)) for sock, address in bound]


def listen_all(bound: Iterable[Bound], config: BrokerConfig) -> None:
    """Lets clients connect; their requests wait until `Listening.open`. Raises OSError."""
    for sock, address in bound:
        listen(sock, address, config)


class Listening:
    """The listeners of a process, by which clients, brokers and controllers reach it."""

    def __init__(self, clock: Clock, max_connections: int) -> None:
        """`max_connections`: the most that the process may have open."""
        self.listeners: list[Listener] = []
        self._clock = clock
        self._max_connections = max_connections
        self._accepting: list[Accepting] = []
        self._unheard = Unheard(clock)
        self._closing = contextlib.ExitStack()
        """Ends what listeners have begun."""
        self._limit_of_address: Callable[[str], float | None] | None = None

    def open(self, bound: Sequence[Bound], dispatcher: FrameAnswerer) -> None:
        """Accepts connections, whose requests the dispatcher answers. What these listeners admit, and hold in memory,
        is bounded for all of them together."""
        host = dispatcher.host
        config, lines = host.config, ConnectionLines(host.faults)
        admission = Admission(lambda: host.config, self._clock, lines, self._max_connections)
        admission.limit_of_address = self._limit_of_address
        surges = Surges(lambda: host.config, self._clock, lines, self._unheard.ignore)
        memory = RequestMemory(config.request_memory_bytes, config.request_memory_bytes_per_ip)
        unread = UnreadAnswers(config.odradek_unread_answers_max_bytes, lines)
        for sock, address in bound:
            answer, strangers, tls = self._door(address, dispatcher, lines)
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
                strangers=strangers,
            )
            self.listeners.append(listener)
            self._unheard.add(sock)
            self._accepting.append(Accepting(sock, _maker(listener, tls), takes=surges.takes))

    def limit_addresses(self, limit_of_address: Callable[[str], float | None] | None) -> None:
        """Sets how many connections an address may make in a second; None where any may make any number."""
        self._limit_of_address = limit_of_address
        for listener in self.listeners:
            listener.admission.limit_of_address = limit_of_address

    def _door(
        self, address: ListenerAddress, dispatcher: FrameAnswerer, lines: ConnectionLines
    ) -> tuple[AnswerFrame, Strangers | None, TlsDoor | None]:
        """Returns who answers on a listener, who keeps its connections until they have authenticated, and what secures
        them."""
        if address.security_protocol == "PLAINTEXT":
            return dispatcher.answer, None, None
        from programs.run.securing import secure

        return secure(address, dispatcher, self._clock, lines, self._closing)

    def close(self) -> None:
        """Accepts no more connections, and closes each one once its answers have gone out."""
        self._closing.close()
        self._unheard.close()
        for accepting in self._accepting:
            accepting.close()
        for listener in self.listeners:
            listener.close_all()

    async def drained(self) -> None:
        """Waits until all connections are closed, or have had CLOSE_WITHIN_S for it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                for listener in self.listeners:
                    await listener.emptied()
        for listener in self.listeners:
            listener.abort_all()


def _maker(listener: Listener, tls: TlsDoor | None) -> MakeProtocol:
    """Returns what makes the protocol of a connection that the listener has accepted, typed as asyncio takes it."""
    if tls is None:
        return cast(MakeProtocol, lambda: ServerConnection(listener))
    return cast(MakeProtocol, lambda: tls.accepted(lambda: ServerConnection(listener)))

"""A network of hosts: streams deliver in order and late, connections are lost, links are cut and heal.

Bytes that are on their way while a link is cut arrive after it has healed, unless the connection was abandoned, so old
requests may arrive late. As with TCP, only whole connections are lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

from tests.simulation.cluster.processes import ClusterLoop, Process

DELAY_S = 0.001
"""The average delay of bytes."""

SLOW = 0.02
"""The probability of a delay that is a hundred times as long."""

INSTANT_S = 1e-9
"""Time between arrivals on a stream, because timers of the same time run in any order."""


class Stream(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: Network, process: Process, protocol: Any, peername: str) -> None:
        super().__init__()
        self.process = process
        self.other: Stream
        self.protocol = protocol
        self._network = network
        self._peername = peername
        self._closing = False
        self._lost = False
        self._dice = Random(network.dice.getrandbits(32))
        """Its own random numbers, because a broker that stops closes its connections in no fixed order."""
        self._arrives_s = 0.0
        self._reading = True
        self._unread: list[Callable[[], None]] = []

    # As protocols see it

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self._peername, 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._network.loop.call_soon(self._read_on, context=self.process.context)

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        data = b"".join(map(bytes, list_of_data))
        if not self._closing and data and not self.process.is_dead:
            self.post(lambda: self.other.feed(data))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.post(self.other.lose)
            self._network.loop.call_soon(self.lose, context=self.process.context)

    abort = close

    def setblocking(self, flag: bool) -> None: ...

    # As the network sees it

    def begin(self, protocol: Any) -> Any:
        """Accepts the connection, which may be over already, and delivers the bytes that have arrived meanwhile.
        Returns the protocol."""
        self.protocol = protocol
        protocol.connection_made(self)
        if self._lost:
            protocol.connection_lost(None)
        elif self._reading:
            self._network.loop.call_soon(self._read_on, context=self.process.context)
        return protocol

    def post(self, arrive: Callable[[], None]) -> None:
        """Sends something to the other end, where it arrives after everything that was sent before."""
        loop, other = self._network.loop, self.other
        after_s = self._arrives_s + INSTANT_S
        self._arrives_s = max(after_s, loop.time() + self._network.delay_s(self._dice))
        link = (self.process.host, other.process.host)
        loop.call_at(
            self._arrives_s, lambda: self._network.pass_on(link, other.process, arrive), context=other.process.context
        )

    def feed(self, data: bytes) -> None:
        """Delivers bytes."""
        if self._closing:
            return
        if self._unread or not self._reading or self.protocol is None:
            self._unread.append(lambda: self._receive(data))
        else:
            self._receive(data)

    def _read_on(self) -> None:
        while self._reading and self._unread and not self._closing:
            self._unread.pop(0)()

    def _receive(self, data: bytes) -> None:
        protocol, rest = self.protocol, memoryview(data)
        while rest and not self._closing:
            room = protocol.get_buffer(-1)
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            rest = rest[count:]
            protocol.buffer_updated(count)

    def lose(self) -> None:
        """Ends the connection."""
        self._closing = True
        if not self._lost and not self.process.is_dead:
            self._lost = True
            self._network.streams.pop(self, None)
            if self.protocol is not None:
                self.protocol.connection_lost(None)

    def __hash__(self) -> int:
        return id(self)


class Network:
    """The hosts by name; a program listens on all ports of its host."""

    def __init__(self, loop: ClusterLoop, dice: Random) -> None:
        self.loop = loop
        self.dice = dice
        self.streams: dict[Stream, None] = {}
        self.is_calm = False
        """True while nothing is slow."""
        self.slowness = 1
        """Factor by which all delays are longer than usual."""
        self.loss = 0.05
        """The probability that a message of the controller is lost."""
        self.doubling = 0.05
        """The probability that a message of the controller arrives twice."""
        self.late_s = 0.7
        """The average time after which a message arrives a second time."""
        self._listeners: dict[str, tuple[Process, asyncio.Queue[Stream]]] = {}
        """The process that listens on each host, and the connections that it has not accepted yet."""
        self._cut: dict[tuple[str, str], list[Callable[[], None]]] = {}
        """The directions that are cut, each with the waiting deliveries."""

    def is_lost(self) -> bool:
        """Draws whether a message of the controller is lost."""
        return not self.is_calm and self.dice.random() < self.loss

    def comes_twice(self) -> bool:
        """Draws whether a message of the controller arrives a second time."""
        return not self.is_calm and self.dice.random() < self.doubling

    def delay_s(self, dice: Random) -> float:
        """Draws the delay of a message."""
        factor = 100 if not self.is_calm and dice.random() < SLOW else 1
        return factor * self.slowness * dice.expovariate(1 / DELAY_S)

    # Links

    def cut(self, one: str, other: str) -> None:
        """Stops all traffic from one host to the other."""
        self._cut.setdefault((one, other), [])

    def heal(self) -> None:
        """Allows all traffic again; waiting messages come first."""
        waiting, self._cut = self._cut, {}
        for held in waiting.values():
            for arrive in held:
                arrive()

    def pass_on(self, link: tuple[str, str], receiver: Process, arrive: Callable[[], None]) -> None:
        """Delivers something, or keeps it until the link heals."""
        held = self._cut.get(link)
        if held is not None:
            held.append(partial(self._deliver_soon, receiver, arrive))
        else:
            self._deliver(receiver, arrive)

    def _deliver_soon(self, receiver: Process, arrive: Callable[[], None]) -> None:
        self.loop.call_soon(self._deliver, receiver, arrive, context=receiver.context)

    def _deliver(self, receiver: Process, arrive: Callable[[], None]) -> None:
        if not receiver.is_dead:
            arrive()

    async def passed(self, one: str, other: str) -> None:
        """Returns once a message has travelled from one host to the other."""
        await asyncio.sleep(self.delay_s(self.dice))
        held = self._cut.get((one, other))
        if held is not None:
            came: asyncio.Future[None] = self.loop.create_future()
            held.append(partial(_come, came))
            await came

    # Connections

    async def accept(self, process: Process) -> Stream:
        """Returns the process's end of the next connection to its host, which is accepted only by this call."""
        listening = self._listeners.get(process.host)
        if listening is None or listening[0] is not process:
            listening = self._listeners[process.host] = process, asyncio.Queue()
        try:
            return await listening[1].get()
        except asyncio.CancelledError:
            self._refuse(listening[1])
            raise

    def _refuse(self, arrived: asyncio.Queue[Stream]) -> None:
        """Refuses the waiting connections of a listener that has ended."""
        self._listeners = {host: one for host, one in self._listeners.items() if one[1] is not arrived}
        while not arrived.empty():
            arrived.get_nowait().close()

    async def connect(self, process: Process, factory: Callable[[], Any], host: str) -> tuple[Stream, Any]:
        """Opens a connection. Raises ConnectionRefusedError if no process listens."""
        await self.passed(process.host, host)
        await self.passed(host, process.host)
        server, arrived = self._listeners.get(host, (None, None))
        if server is None or arrived is None or server.is_dead:
            raise ConnectionRefusedError(f"nobody listens at {host}")
        client_side = Stream(self, process, factory(), host)
        server_side = Stream(self, server, None, process.host)
        client_side.other, server_side.other = server_side, client_side
        self.streams[client_side] = self.streams[server_side] = None
        arrived.put_nowait(server_side)
        client_side.protocol.connection_made(client_side)
        return client_side, client_side.protocol

    def died(self, process: Process) -> None:
        """Ends a dead process's connections; the other ends notice it later."""
        for stream in [one for one in self.streams if one.process is process]:
            del self.streams[stream]
            stream.post(stream.other.lose)

    def lose_one(self) -> None:
        """Loses one of the connections."""
        if self.streams:
            stream = self.dice.choice([*self.streams])
            self.loop.call_soon(stream.lose, context=stream.process.context)
            self.loop.call_soon(stream.other.lose, context=stream.other.process.context)


def _come(message: asyncio.Future[None]) -> None:
    if not message.done():
        message.set_result(None)

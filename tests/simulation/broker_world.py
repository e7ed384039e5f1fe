"""A whole broker on a faulty disk in virtual time. It is killed in the middle of any call on a file, and started
again."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import Any, TypeVar, cast

from broker.config import BrokerConfig
from broker.network.connection import ServerConnection
from programs.run.server import Server
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.schema import identity
from storage.disk import Disk
from storage.open_files import OpenFiles
from tests.broker.inprocess import Wire, decode_response, request_frame
from tests.simulation.faulty_disk import Crash, FaultyDisk
from tests.simulation.virtual_time import InlineWorkers, virtual_clock

R = TypeVar("R")

DATA = "/data"
OPTIONS = {"log.dirs": DATA, "listeners": "PLAINTEXT://127.0.0.1:0", "log.cleaner.enable": "false"}
"""No client connects to the listener, and the cleaner would be a separate process."""

CALLS_BEFORE_A_KILL = 60
"""Maximum number of calls on files between the order of a kill and the kill."""


class Killed(ConnectionError):
    """The broker was killed, before or after it has done what was requested."""


AFTERWARDS = frozenset({"close", "unload"})
"""Calls that may come after a process's end: collected objects close their handles, and a large read releases all
mapped pages in the process."""


class LivesDisk:
    """The disk as one process of the broker sees it. After that process's end, calls through this object have no
    effect."""

    def __init__(self, disk: FaultyDisk) -> None:
        self._disk = disk
        self.open_files = OpenFiles()
        self.is_over = False

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._disk, name)
        if not callable(attribute) or name in AFTERWARDS:
            return attribute

        def call(*arguments: Any, **named: Any) -> Any:
            if self.is_over:
                raise Crash(name)
            try:
                return attribute(*arguments, **named)
            except Crash:
                self.is_over = True
                raise

        return call


class SimulatedServer(Server):
    """A broker without threads, whose files and time are simulated."""

    def __init__(self, config: BrokerConfig, disk: Disk) -> None:
        super().__init__(config, asyncio.Event())
        self._disk = disk  # any Disk will do
        self._clock = virtual_clock()
        self._metadata_worker = InlineWorkers()  # type: ignore[assignment]
        self._workers = InlineWorkers()  # type: ignore[assignment]


class AnsweringWire(Wire):
    """A transport that reports writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def writelines(self, list_of_data: Any) -> None:
        super().writelines(list_of_data)
        self.written.set()

    def close(self) -> None:
        super().close()
        self.written.set()

    abort = close


class BrokerWorld:
    """A broker over all of its processes."""

    def __init__(self, dice: Random, options: dict[str, str]) -> None:
        self.dice = dice
        self.disk = FaultyDisk(dice)
        self.disk.mkdir(DATA)
        self.config = BrokerConfig.parse({**OPTIONS, **options})
        self.kills = 0
        self._server: SimulatedServer | None = None
        self._disk = LivesDisk(self.disk)
        self._wires: list[AnsweringWire] = []

    @property
    def server(self) -> SimulatedServer:
        """Returns the running server. Raises Killed while there is none."""
        if self._server is None or self._disk.is_over:
            raise Killed
        return self._server

    async def start(self) -> None:
        """Starts the broker; tries again after a kill during the start."""
        while True:
            self._disk = LivesDisk(self.disk)
            server = SimulatedServer(self.config, cast(Disk, self._disk))
            try:
                await server.start()
            except Crash:
                self._bury()
                continue
            self._server = server
            return

    async def stop(self) -> None:
        """Stops the broker cleanly, unless it is killed during the stop."""
        with contextlib.suppress(Crash, Killed):
            await self.server.stop()
        self._bury()

    def kill_soon(self) -> None:
        """Kills the broker in the middle of one of the next calls that change a file."""
        self.disk.crash_at = self.disk.calls + self.dice.randint(1, CALLS_BEFORE_A_KILL)

    def kill_now(self) -> None:
        self._disk.is_over = True

    @property
    def is_dead(self) -> bool:
        return self._disk.is_over

    def _bury(self) -> None:
        self._server = None
        self._disk.is_over = True
        self.kills += 1
        self.disk.crash(power=False)
        for wire in self._wires:
            wire.close()
        self._wires.clear()

    async def revive(self) -> None:
        self._bury()
        await self.start()

    async def create_topic(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        response = await self.server.broker.topics.create(request)
        assert not response.topics[0].error_code

    def watch(self, wire: AnsweringWire) -> None:
        self._wires.append(wire)


class SimulatedConnection:
    """The connection of `TransactionalClient`. It is opened when needed, and sometimes lost."""

    def __init__(self, world: BrokerWorld, loss: float = 0.0) -> None:
        self.world = world
        self.loss = loss
        self._wire: AnsweringWire | None = None
        self._connection: ServerConnection | None = None

    async def ask(self, request: object, version: int, response: type[R]) -> R:
        """Returns the answer to a request. Raises Killed if there is no answer."""
        dice = self.world.dice
        await asyncio.sleep(dice.expovariate(1000))
        wire, connection = self._connected()
        try:
            self._send(connection, request_frame(request, version))
            if dice.random() < self.loss:
                raise Killed
            while not wire.sent:
                if wire.closing or self.world.is_dead:
                    raise Killed
                await self._wait(wire)
        except (Crash, Killed):
            self._forget()
            raise Killed from None
        await asyncio.sleep(dice.expovariate(1000))
        (frame,) = wire.take()
        return decode_response(frame, identity(type(request)).key, version, response)

    async def _wait(self, wire: AnsweringWire) -> None:
        wire.written.clear()
        try:
            async with asyncio.timeout(1):  # to see whether the broker was killed
                await wire.written.wait()
        except TimeoutError:
            pass

    def _connected(self) -> tuple[AnsweringWire, ServerConnection]:
        server = self.world.server
        if self._wire is None or self._wire.closing or self._connection is None:
            self._wire = AnsweringWire()
            self.world.watch(self._wire)
            self._connection = ServerConnection(server.listeners[0])
            self._connection.connection_made(self._wire)
        return self._wire, self._connection

    def _send(self, connection: ServerConnection, data: bytes) -> None:
        while data:
            room = connection.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            connection.buffer_updated(count)

    def _forget(self) -> None:
        if self._connection is not None and self._wire is not None and not self._wire.closing:
            self._wire.close()
            self._connection.connection_lost(None)
        self._wire = self._connection = None

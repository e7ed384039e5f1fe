"""Tests the accepting of connections: one in a turn of the event loop, whatever becomes of it, until `close`."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, TypeAlias, cast

import pytest
import uvloop

from broker import accepting
from broker.accepting import AGAIN_MS, Accepting
from broker.clock import Clock, SystemClock
from tests.broker.inprocess import LONG_S

LOCALHOST = "127.0.0.1"
MANY = 20

Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on each of the event loops that brokers use."""

    def run_it(work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(work)

    return run_it


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with socket.create_server((LOCALHOST, 0), backlog=MANY) as listening:
        listening.setblocking(False)
        yield listening


class Greeting(asyncio.Protocol):
    """Sends a greeting to each client, and records the connection."""

    def __init__(self, came: list[asyncio.Transport]) -> None:
        self._came = came

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self._came.append(made)
        made.write(b"hello")


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def peer_of(sock: socket.socket) -> socket.socket:
    """Returns a connection that waits in the kernel, because it is not accepted yet."""
    return socket.create_connection((LOCALHOST, port_of(sock)))


async def greeted(sock: socket.socket) -> bytes:
    """Connects, and returns the received bytes."""
    reader, writer = await asyncio.open_connection(LOCALHOST, port_of(sock))
    heard = await reader.readexactly(5)
    writer.close()
    return heard


def test_no_turn_has_two_connections(run: Run, sock: socket.socket) -> None:
    async def scenario() -> None:
        came: list[asyncio.Transport] = []
        peers = [peer_of(sock) for _ in range(MANY)]
        door = Accepting(sock, lambda: Greeting(came), SystemClock())
        after_each_turn = []
        while len(came) < MANY:
            await asyncio.sleep(0)
            after_each_turn.append(len(came))
        steps = [later - earlier for earlier, later in zip([0, *after_each_turn], after_each_turn, strict=False)]
        assert max(steps) == 1
        door.close()
        for transport in came:
            transport.close()
        for peer in peers:
            peer.close()

    run(scenario())


def test_the_next_one_waits_until_its_rest_is_over(run: Run, sock: socket.socket) -> None:
    async def scenario() -> None:
        came: list[asyncio.Transport] = []
        rested, go_on = asyncio.Event(), asyncio.Event()

        async def rest() -> None:
            rested.set()
            await go_on.wait()

        peers = [peer_of(sock) for _ in range(2)]
        door = Accepting(sock, lambda: Greeting(came), SystemClock(), rest=rest)
        await rested.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(came) == 1
        go_on.set()
        rested.clear()
        await rested.wait()
        assert len(came) == 2
        door.close()
        for transport in came:
            transport.close()
        for peer in peers:
            peer.close()

    run(scenario())


def test_who_has_gone_before_its_turn_keeps_nobody_out(run: Run, sock: socket.socket) -> None:
    async def scenario() -> None:
        for _ in range(3):
            peer = peer_of(sock)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # its end is a reset
            peer.close()
        door = Accepting(sock, lambda: Greeting([]), SystemClock())
        assert await greeted(sock) == b"hello"
        door.close()

    run(scenario())


def test_who_is_not_taken_is_closed_and_the_next_one_served(run: Run, sock: socket.socket) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        came: list[asyncio.Transport] = []
        unwelcome = [peer_of(sock) for _ in range(MANY)]
        ports = {port_of(one) for one in unwelcome}
        door = Accepting(sock, lambda: Greeting(came), SystemClock(), accepts=lambda address: address[1] not in ports)
        assert await greeted(sock) == b"hello"
        for one in unwelcome:
            one.setblocking(False)
            assert await loop.sock_recv(one, 1) == b""
            one.close()
        assert len(came) == 1
        assert await greeted(sock) == b"hello", "nobody of them was the last"
        door.close()

    run(scenario())


def test_the_first_that_is_taken_after_many_that_are_not_is_served(
    run: Run, sock: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "CLOSED_AT_ONCE", 4)

    async def scenario() -> None:
        unwelcome = [peer_of(sock) for _ in range(4)]
        ports = {port_of(one) for one in unwelcome}
        welcome = peer_of(sock)
        welcome.setblocking(False)
        door = Accepting(sock, lambda: Greeting([]), SystemClock(), accepts=lambda address: address[1] not in ports)
        assert await asyncio.get_running_loop().sock_recv(welcome, 5) == b"hello"
        door.close()
        for one in (welcome, *unwelcome):
            one.close()

    run(scenario())


class Full(socket.socket):
    """A listening socket of a process that has no free descriptor at first."""

    full = 3

    def accept(self) -> tuple[socket.socket, Any]:
        if self.full:
            self.full -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_without_descriptors_it_is_tried_again_after_a_while(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses_ms: list[int] = []

    async def pause(_: Clock, delay_ms: int) -> None:
        pauses_ms.append(delay_ms)

    monkeypatch.setattr(accepting, "pause", pause)

    async def scenario() -> None:
        full = Full()
        full.bind((LOCALHOST, 0))
        full.listen()
        full.setblocking(False)
        door = Accepting(full, lambda: Greeting([]), SystemClock())
        assert await greeted(full) == b"hello"
        assert pauses_ms == [AGAIN_MS] * 3
        door.close()

    run(scenario())


def test_a_connection_that_cannot_be_served_is_closed_and_known(run: Run, sock: socket.socket) -> None:
    async def scenario() -> None:
        loop, errors, came = asyncio.get_running_loop(), [], list[asyncio.Transport]()
        loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))

        def make() -> asyncio.Protocol:
            if not errors:
                raise ValueError("no certificate")
            return Greeting(came)

        door = Accepting(sock, make, SystemClock())
        reader, writer = await asyncio.open_connection(LOCALHOST, port_of(sock))
        assert await reader.read() == b""
        writer.close()
        assert await greeted(sock) == b"hello"
        assert [str(error) for error in errors] == ["no certificate"]
        door.close()

    run(scenario())


def test_after_its_close_nobody_is_accepted(run: Run, sock: socket.socket) -> None:
    async def scenario() -> None:
        came: list[asyncio.Transport] = []
        port = port_of(sock)
        door = Accepting(sock, lambda: Greeting(came), SystemClock())
        await asyncio.sleep(0)
        waiting = peer_of(sock)
        door.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(LOCALHOST, port)
        waiting.setblocking(False)
        with pytest.raises(ConnectionResetError):
            await asyncio.get_running_loop().sock_recv(waiting, 1)
        assert came == []
        waiting.close()

    run(scenario())


class Closing(asyncio.Protocol):
    """Closes the door as soon as it is connected, and records its end."""

    def __init__(self, doors: list[Accepting], ended: asyncio.Future[Exception | None]) -> None:
        self._doors = doors
        self._ended = ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._doors[0].close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set_result(exc)


def test_a_connection_that_is_made_while_the_door_closes_is_told_its_end(run: Run, sock: socket.socket) -> None:
    async def scenario() -> None:
        doors: list[Accepting] = []
        ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        doors.append(Accepting(sock, lambda: Closing(doors, ended), SystemClock()))
        with peer_of(sock) as peer:
            async with asyncio.timeout(LONG_S):
                assert await ended is None
            peer.settimeout(LONG_S)
            with suppress(ConnectionError):
                assert not peer.recv(1)

    run(scenario())

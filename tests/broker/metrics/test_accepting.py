"""Tests that scrapers are accepted one after the other, even if many connect."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from broker.clock import Clock, SystemClock
from broker.metrics import accepting
from broker.metrics.accepting import (
    EACH_MS,
    LONGEST_PAUSE_MS,
    SEND_BUFFER_BYTES,
    SENT_BYTES_PER_MS,
    ScraperListener,
    listening,
)
from broker.metrics.http import HttpRequest, HttpResponse, plain
from broker.metrics.server import MetricsServer

LOCALHOST = "127.0.0.1"


class Turns:
    """Pauses that a test ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting = asyncio.Event()
        self.go_on = asyncio.Event()
        self.pauses_ms: list[int] = []
        monkeypatch.setattr(accepting, "pause", self.pause)

    async def pause(self, _: Clock, delay_ms: int) -> None:
        self.pauses_ms.append(delay_ms)
        self.waiting.set()
        await self.go_on.wait()
        self.go_on.clear()

    async def next(self) -> None:
        """Lets the next connection in, and returns once the connection after it waits."""
        self.waiting.clear()
        self.go_on.set()
        await self.waiting.wait()


class Accepted(asyncio.Protocol):
    """The accepted connections, in order."""

    def __init__(self, transports: list[asyncio.BaseTransport]) -> None:
        self._transports = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transports.append(transport)


def port_of(transport: asyncio.BaseTransport, name: str) -> object:
    return transport.get_extra_info(name)[1]


async def test_one_connection_is_accepted_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, transports = Turns(monkeypatch), list[asyncio.BaseTransport]()
    listener = ScraperListener(lambda: Accepted(transports), SystemClock())
    port = await listener.open(LOCALHOST, 0)
    writers = [(await asyncio.open_connection(LOCALHOST, port))[1] for _ in range(3)]
    await turns.waiting.wait()
    for count in (1, 2, 3):
        assert len(transports) == count
        if count < len(writers):
            await turns.next()
    came = [port_of(writer.transport, "sockname") for writer in writers]
    assert [port_of(transport, "peername") for transport in transports] == came
    for writer in writers:
        writer.close()
    listener.close()


async def test_the_next_one_waits_for_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    listener = ScraperListener(lambda: Accepted([]), SystemClock())
    _, writer = await asyncio.open_connection(LOCALHOST, await listener.open(LOCALHOST, 0))
    await turns.waiting.wait()
    listener.note_sent(100 * SENT_BYTES_PER_MS)
    listener.note_sent(100 * SENT_BYTES_PER_MS)
    await turns.next()
    listener.note_sent(100_000 * SENT_BYTES_PER_MS)
    await turns.next()
    assert turns.pauses_ms == [EACH_MS, 200, LONGEST_PAUSE_MS]
    writer.close()
    listener.close()


async def test_a_peer_that_has_gone_before_its_turn_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ready(request: HttpRequest) -> HttpResponse:
        return plain(200, "ready")

    turns = Turns(monkeypatch)
    server = MetricsServer({"/readyz": ready}, SystemClock())
    port = await server.listen(LOCALHOST, 0)
    gone = socket.create_connection((LOCALHOST, port))
    await turns.waiting.wait()
    again = socket.create_connection((LOCALHOST, port))
    for one in (gone, again):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # its end is a reset
        one.close()
    reader, writer = await asyncio.open_connection(LOCALHOST, port)
    writer.write(b"GET /readyz HTTP/1.1\r\n\r\n")
    await turns.next()
    await turns.next()
    assert (await reader.read()).endswith(b"ready\n")
    writer.close()
    server.close()


async def test_the_kernel_takes_little_of_a_page_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, transports = Turns(monkeypatch), list[asyncio.BaseTransport]()
    listener = ScraperListener(lambda: Accepted(transports), SystemClock())
    _, writer = await asyncio.open_connection(LOCALHOST, await listener.open(LOCALHOST, 0))
    await turns.waiting.wait()
    buffer_bytes = transports[0].get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    assert buffer_bytes == 2 * SEND_BUFFER_BYTES, "Linux doubles what it is told"
    writer.close()
    listener.close()


async def test_an_address_in_use_is_told() -> None:
    (sock,) = await listening(LOCALHOST, 0)
    with sock, pytest.raises(OSError, match="in use") as raised:
        await listening(LOCALHOST, sock.getsockname()[1])
    assert raised.value.errno == errno.EADDRINUSE


async def test_an_empty_host_is_every_interface() -> None:
    sockets = await listening("", 0)
    assert {sock.getsockname()[0] for sock in sockets} >= {"0.0.0.0"}
    for sock in sockets:
        sock.close()


async def test_after_its_close_nobody_is_accepted() -> None:
    listener = ScraperListener(lambda: Accepted([]), SystemClock())
    port = await listener.open(LOCALHOST, 0)
    listener.close()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(LOCALHOST, port)

"""Tests the listener of metrics with misbehaving scrapers: other scrapers are served, and the memory for them is
bounded."""

from __future__ import annotations

import asyncio

import pytest

from broker.clock import SystemClock
from broker.metrics import server as module
from broker.metrics.http import MAX_HEAD_BYTES, HttpRequest, HttpResponse
from broker.metrics.server import (
    ANSWER_WITHIN_MS,
    MAX_CONNECTIONS,
    REQUEST_WITHIN_MS,
    MetricsConnection,
    MetricsServer,
)
from tests.clock import ManualClock

REQUEST = b"GET /metrics HTTP/1.1\r\n\r\n"


class Socket(asyncio.Transport):
    """A peer that reads nothing."""

    def __init__(self, ip: str) -> None:
        super().__init__()
        self.ip = ip
        self.sent = b""
        self.is_aborted = False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return (self.ip, 1) if name == "peername" else default

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.is_aborted

    def writelines(self, list_of_data: object) -> None:
        assert isinstance(list_of_data, list)
        self.sent += b"".join(list_of_data)

    def close(self) -> None: ...

    @property
    def sent_bytes(self) -> int:
        return len(self.sent)

    def abort(self) -> None:
        self.is_aborted = True


class Pages:
    """A page of a hundred bytes, which differs each time."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        self.made += 1
        return HttpResponse(200, (b"%0100d" % self.made,))


def make_server() -> MetricsServer:
    return MetricsServer({"/metrics": Pages()}, SystemClock())


async def connected(server: MetricsServer, ip: str, received: bytes = b"") -> tuple[MetricsConnection, Socket]:
    connection, socket = MetricsConnection(server), Socket(ip)
    connection.connection_made(socket)
    if received and not socket.is_aborted:
        await asked(connection, received)
    return connection, socket


async def asked(connection: MetricsConnection, received: bytes) -> None:
    connection.data_received(received)
    for _ in range(3):
        await asyncio.sleep(0)  # the page is made, and sent


def ended(*connections: MetricsConnection) -> None:
    """Closes the servers, so that their timers and tasks end with them."""
    for connection in connections:
        connection.connection_lost(None)


async def test_who_has_sent_no_request_goes_first() -> None:
    server = make_server()
    waiting = [await connected(server, "10.0.0.1", REQUEST) for _ in range(MAX_CONNECTIONS - 1)]
    idle, socket = await connected(server, "10.0.0.2")
    newest, _ = await connected(server, "10.0.0.1")
    assert socket.is_aborted
    assert newest in server.connections
    assert not any(one.is_aborted for _, one in waiting)
    ended(idle, newest, *(connection for connection, _ in waiting))


async def test_an_address_that_takes_no_answer_leaves_a_place_to_others() -> None:
    server = make_server()
    first, *rest = [await connected(server, "10.0.0.1", REQUEST) for _ in range(MAX_CONNECTIONS)]
    refused, socket = await connected(server, "10.0.0.1", REQUEST)
    assert socket.is_aborted, "it has all places already"
    scraper, of_scraper = await connected(server, "10.0.0.2", REQUEST)
    assert first[1].is_aborted
    assert of_scraper.sent_bytes > 100
    ended(first[0], refused, scraper, *(connection for connection, _ in rest))


async def test_a_half_open_flood_takes_no_place_from_another_address() -> None:
    server = make_server()
    scraper, of_scraper = await connected(server, "10.0.0.2")
    flood = [await connected(server, "10.0.0.1") for _ in range(1000)]
    assert len(server.connections) == MAX_CONNECTIONS
    assert not of_scraper.is_aborted
    ended(scraper, *(connection for connection, _ in flood))


async def test_pages_that_nobody_takes_go_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNREAD_BYTES", 350)
    server = make_server()
    connections = [await connected(server, f"10.0.0.{number}", REQUEST) for number in range(5)]
    assert [socket.is_aborted for _, socket in connections] == [True, True, False, False, False]
    ended(*(connection for connection, _ in connections))
    assert not server.unread
    assert not server.connections


async def test_one_page_may_be_larger_than_all_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNREAD_BYTES", 10)
    server = make_server()
    connection, socket = await connected(server, "10.0.0.1", REQUEST)
    assert not socket.is_aborted
    assert socket.sent_bytes > 100
    ended(connection)


async def test_a_byte_now_and_then_wins_no_time() -> None:
    clock = ManualClock()
    server = MetricsServer({"/metrics": Pages()}, clock)
    connection, socket = await connected(server, "10.0.0.1")
    for byte in REQUEST[:-1]:
        connection.data_received(bytes([byte]))
    clock.advance(REQUEST_WITHIN_MS - 1)
    assert not socket.is_aborted
    clock.advance(1)
    assert socket.is_aborted
    ended(connection)


async def test_an_answer_has_its_time_from_the_request_on() -> None:
    clock = ManualClock()
    server = MetricsServer({"/metrics": Pages()}, clock)
    connection, socket = await connected(server, "10.0.0.1")
    clock.advance(REQUEST_WITHIN_MS - 1)
    await asked(connection, REQUEST)
    clock.advance(ANSWER_WITHIN_MS - 1)
    assert not socket.is_aborted
    clock.advance(1)
    assert socket.is_aborted, "it has taken nothing"
    ended(connection)


async def test_a_second_request_on_a_connection_is_not_read() -> None:
    pages = Pages()
    server = MetricsServer({"/metrics": pages}, SystemClock())
    connection, socket = await connected(server, "10.0.0.1", REQUEST * 100)
    sent_bytes = socket.sent_bytes
    connection.data_received(REQUEST)
    await asyncio.sleep(0)
    assert pages.made == 1
    assert socket.sent_bytes == sent_bytes
    ended(connection)


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 18])
async def test_headers_without_an_end_are_answered_and_not_kept(piece_bytes: int) -> None:
    server = make_server()
    connection, socket = await connected(server, "10.0.0.1", b"GET /metrics HTTP/1.1\r\n")
    sent_bytes = 0
    while not connection.has_request:
        connection.data_received(b"x" * piece_bytes)
        sent_bytes += piece_bytes
    assert sent_bytes < MAX_HEAD_BYTES + piece_bytes
    assert b" 431 " in socket.sent
    ended(connection)

"""Tests the admission of connections: limits in total, per address and per second; and the log lines about rejected
ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.network.descriptors import WAITING_CONNECTIONS
from broker.request.log_limiter import LINES_OF_ADDRESS
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.inprocess import Client, InProcess, request_frame
from tests.broker.test_listener import HELLO
from tests.log_lines import Line


async def test_connections_of_an_address_are_limited(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"max.connections.per.ip": "2"}) as served:
        clients = [served.client() for _ in range(3)]
        assert [client.wire.closing for client in clients] == [False, False, True]
        clients[2].connection.connection_lost(None)
        clients[0].connection.connection_lost(None)
        assert not served.client().wire.closing


async def test_an_address_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    options = {"max.connections.per.ip": "5", "max.connections.per.ip.overrides": "127.0.0.1:1,10.0.0.1:7"}
    async with InProcess(tmp_path, options) as served:
        assert not served.client().wire.closing
        assert served.client().wire.closing


async def test_connections_beyond_the_limit_wait_for_a_place(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"max.connections": "1"}) as served:
        first, second = served.client(), served.client()
        assert not second.wire.is_closing()
        second.send(request_frame(HELLO, 3))
        await asyncio.sleep(0)
        assert not second.wire.sent
        assert not second.wire.is_reading()
        first.connection.connection_lost(None)
        assert len(second.wire.take()) == 1
        assert second.wire.is_reading()


async def test_connections_beyond_the_rate_wait_for_their_turn(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"max.connection.creation.rate": "1", "quota.window.num": "2"}) as served:
        first, second = served.client(), served.client()
        for client in (first, second):
            client.send(request_frame(HELLO, 3))
        assert [len(client.wire.take()) for client in (first, second)] == [1, 0]
        assert not second.wire.is_reading()
        assert len(await second.frames(1)) == 1


async def test_an_address_that_connects_too_often_is_closed_after_a_while(tmp_path: Path) -> None:
    options = {"odradek.connection.creation.rate.per.ip": "1", "quota.window.num": "2"}
    async with InProcess(tmp_path, options) as served:
        first, second = served.client(), served.client()
        for client in (first, second):
            client.send(request_frame(HELLO, 3))
        assert [len(client.wire.take()) for client in (first, second)] == [1, 0]
        assert not second.wire.closing
        assert await second.frames(1) == []
        assert second.wire.aborted


async def test_a_hundred_connections_that_are_wrong_have_ten_lines(tmp_path: Path, lines: list[Line]) -> None:
    async with InProcess(tmp_path) as served:
        for _ in range(100):
            served.client().send(b"GET / HTTP/1.1\r\n")
        assert len(lines) == LINES_OF_ADDRESS
        served.server.housekeeping.log_suppressed_lines()
        assert lines[-1].fields == {
            "count": 100 - LINES_OF_ADDRESS,
            "most_of": "127.0.0.1",
            "of_it": 100 - LINES_OF_ADDRESS,
        }
        served.client().send(b"GET / HTTP/1.1\r\n")
    assert len(lines) == LINES_OF_ADDRESS + 2


async def test_a_fault_that_a_client_knows_how_to_meet_has_ten_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Line]
) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        await client.ask(MetadataRequest(topics=[]), 13, MetadataResponse)
        route = served.server.listeners[0].answer.__self__.routes[3]  # type: ignore[attr-defined]
        monkeypatch.setattr(route, "handle", lambda call: 1 // 0)
        for _ in range(30):
            assert (await client.ask(MetadataRequest(topics=[]), 13, MetadataResponse)).error_code == -1
    assert len(lines) == LINES_OF_ADDRESS


async def test_not_all_wait(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"max.connections": "1"}) as served:
        clients = [served.client() for _ in range(WAITING_CONNECTIONS + 2)]
        assert [client.wire.closing for client in clients] == [False] * (WAITING_CONNECTIONS + 1) + [True]


async def test_limits_count_over_all_listeners(tmp_path: Path) -> None:
    options = {
        "listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:0",
        "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
        "inter.broker.listener.name": "ONE",
        "max.connections.per.ip": "3",
        "max.connections": "2",
    }
    async with InProcess(tmp_path, options) as served:
        clients = [Client(served.server, listener) for listener in (0, 1, 1, 0)]
        assert [client.wire.closing for client in clients] == [False, False, False, True]
        clients[2].send(request_frame(HELLO, 3))
        assert not clients[2].wire.is_reading()
        clients[0].connection.connection_lost(None)
        assert len(clients[2].wire.take()) == 1


async def test_brokers_among_themselves_need_no_place_of_clients(tmp_path: Path) -> None:
    options = {
        "listeners": "BROKERS://127.0.0.1:0,CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "BROKERS:PLAINTEXT,CLIENTS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "max.connections": "1",
    }
    async with InProcess(tmp_path, options) as served:
        clients = [Client(served.server, listener) for listener in (1, 1, 0, 0)]
        for client in clients:
            client.send(request_frame(HELLO, 3))
        assert [len(client.wire.take()) for client in clients] == [1, 0, 1, 1]

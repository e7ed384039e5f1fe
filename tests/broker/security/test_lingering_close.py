"""Tests the lingering close: a rejected client closes first, or has some time, so that it reads the reason in any
case."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from broker.network import unauthenticated
from protocol.messages.metadata import MetadataRequest
from tests.broker.inprocess import Client, InProcess, request_frame
from tests.broker.security.certificates import Authority, client_context
from tests.broker.security.sasl import CLOSED, closing, handshake, log_in, served, stranger
from tests.log_lines import log_lines
from tests.waiting import until

LONG_S = 30


@pytest.fixture(scope="module")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


@pytest.fixture
def reasons() -> Iterator[list[str]]:
    """Returns the reasons in the log lines about closed connections."""
    reasons: list[str] = []
    with log_lines(lambda line: reasons.append(line.fields["reason"]) if line.level == "warning" else None):
        yield reasons


def waiting(broker: InProcess, listener: int = CLOSED) -> int:
    unauthenticated = broker.server.listeners[listener].unauthenticated
    assert unauthenticated is not None
    return len(unauthenticated)


async def rejected_client(broker: InProcess) -> Client:
    client = stranger(broker)
    assert (await log_in(client, "alice", "wrong")).error_code
    return client


async def test_who_is_refused_may_hang_up_first(tmp_path: Path, reasons: list[str]) -> None:
    async with served(tmp_path) as broker:
        client = await rejected_client(broker)
        assert (client.wire.closing, waiting(broker)) == (False, 1)
        client.connection.connection_lost(None)
        assert waiting(broker) == 0
        assert reasons == ["authentication by PLAIN failed: Authentication failed: Invalid username or password"]


async def test_who_does_not_is_closed_after_a_moment(tmp_path: Path, reasons: list[str]) -> None:
    async with served(tmp_path, odradek_authentication_timeout_ms="1500") as broker:
        clients = [await rejected_client(broker) for _ in range(2)]
        other = stranger(broker)
        await handshake(other, "LOGIN")
        for client in (*clients, other):
            await closing(client)
            assert not client.wire.aborted
        assert len(reasons) == 3, reasons


async def test_who_does_not_even_read_is_cut_off(tmp_path: Path) -> None:
    """Such a connection is no longer counted, and would keep a descriptor until connections.max.idle.ms."""
    async with served(tmp_path) as broker:
        client = await rejected_client(broker)
        client.wire.unread_bytes = 1
        await closing(client)
        assert client.wire.aborted


async def test_what_it_sends_meanwhile_is_not_looked_at(tmp_path: Path, reasons: list[str]) -> None:
    async with served(tmp_path) as broker:
        client = await rejected_client(broker)
        for data in (request_frame(MetadataRequest(topics=None), 12), b"\xff\xff\xff\xff", bytes(100_000)):
            client.send(data)
        await asyncio.sleep(0)
        assert (bytes(client.wire.sent), client.wire.closing, len(reasons)) == (b"", False, 1)


async def test_who_has_been_told_makes_room_for_others(tmp_path: Path) -> None:
    async with served(tmp_path, odradek_unauthenticated_connections_max="2") as broker:
        waits, gone, new = stranger(broker), await rejected_client(broker), stranger(broker)
        assert [client.wire.closing for client in (waits, gone, new)] == [False, True, False]
        gone.connection.connection_lost(None)
        assert waiting(broker) == 2


async def test_an_alert_is_read_though_bytes_came_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unauthenticated, "LINGER_MS", LONG_S * 1_000)
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    context = client_context(authority, other.issue("mallory"))
    given = {
        "listeners": "SSL://127.0.0.1:0", "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM", "ssl.keystore.location": str(authority.issue("server")),
        "ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.certificate),
    }  # fmt: skip
    async with InProcess(tmp_path / "data", given) as broker:
        raw = socket.create_connection(("127.0.0.1", broker.server.advertised[0].port), timeout=LONG_S)
        silent = await asyncio.to_thread(context.wrap_socket, raw, server_hostname="localhost")
        (listener,) = broker.server.listeners
        await until(lambda: all(one.is_ending for one in listener.connections))
        for _ in range(2):  # over a closed connection the first would bring a reset, and the second fail
            silent.sendall(b"a request")
        with pytest.raises(ssl.SSLError, match="unknown ca"):
            await asyncio.to_thread(silent.recv, 1)
        silent.close()

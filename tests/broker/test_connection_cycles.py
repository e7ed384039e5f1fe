"""Tests that a connection is freed when it ends, also if a full collection has frozen its objects: cycles of frozen
objects would stay for up to an hour (programs/run/interpreter.py)."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from broker.network.connection import ServerConnection
from broker.network.endpoints import address
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.inprocess import InProcess
from tests.broker.security.certificates import Authority, client_context
from tests.waiting import until
from tests.wire import WireClient

MANY = 60


@pytest.fixture
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """Uses uvloop, because a broker's connections need it."""
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


@pytest.fixture(autouse=True)
def _no_other_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
async def test_a_connection_is_freed_that_was_open_during_a_full_collection(protocol: str, tmp_path: Path) -> None:
    others = connections()  # what another test of this process keeps
    authority = Authority(tmp_path)
    options = {"listeners": f"{protocol}://127.0.0.1:0", "inter.broker.listener.name": protocol}
    if protocol == "SSL":
        options |= {"ssl.keystore.location": str(authority.issue("broker")), "ssl.keystore.type": "PEM"}
    async with InProcess(tmp_path / "data", options) as served:
        (listener,) = served.server.listeners
        bootstrap = address(served.server.advertised[0])
        clients = await asyncio.to_thread(
            connected, bootstrap, client_context(authority) if protocol == "SSL" else None
        )
        assert len(listener.connections) == MANY
        gc.collect()
        gc.freeze()
        await asyncio.to_thread(end, clients)
        await until(lambda: not listener.connections)
        gc.collect()
        gc.unfreeze()
        assert [known for known in connections() if known not in others] == []


def connections() -> list[object]:
    """Returns the objects of connections that are not frozen."""
    return [known for known in gc.get_objects() if isinstance(known, (ServerConnection, ssl.SSLObject))]


def connected(bootstrap: str, context: ssl.SSLContext | None) -> list[WireClient]:
    clients = [WireClient(bootstrap, context=context) for _ in range(MANY)]
    for client in clients:
        client.ask(ApiVersionsRequest(), ApiVersionsResponse, 3)
    return clients


def end(clients: list[WireClient]) -> None:
    """Ends the connections: by a close or a reset, some of them in the middle of a request or with a wrong one."""
    for number, client in enumerate(clients):
        client.socket.sendall((b"", bytes(3), bytes(8), bytes.fromhex("00001000"))[number % 4])
        if number % 3 == 0:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.close()

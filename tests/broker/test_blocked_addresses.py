"""Tests blocked addresses: requests to connect of an address that connects too often are dropped for a moment; others
are accepted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.network import blocked_addresses, syn_filter
from broker.network.accept_rate_limiter import UNBLOCKED_SECONDS
from broker.network.blocked_addresses import BLOCK_MS, MAX_BLOCKED, BlockedAddresses
from tests.broker.inprocess import InProcess
from tests.clock import ManualClock

pytestmark = pytest.mark.skipif(not syn_filter.IS_KNOWN, reason="only Linux has filters of sockets")

LONG_MS = 60_000
TURNS = 10
"""Number of turns of the event loop in which a broker accepts the waiting connections."""
LOUD, QUIET, OTHER = "127.0.0.2", "127.0.0.3", "::1"
ESTABLISHED, SYN_SENT = 1, 2
"""States of a connection (TCP_INFO)."""


class Door:
    """A listening socket with a filter of addresses."""

    def __init__(self, sock: socket.socket) -> None:
        self.clock = ManualClock(0)
        self.blocked = BlockedAddresses(self.clock)
        self.blocked.add(sock)
        self.port = int(sock.getsockname()[1])
        self._peers: list[socket.socket] = []

    def ask(self, source: str = LOUD, *, to: str = "127.0.0.1") -> socket.socket:
        """Requests a connection from an address; it is closed with the others at the end."""
        self._peers.append(ask(self.port, source, to=to))
        return self._peers[-1]

    def hears(self, source: str = LOUD, *, to: str = "127.0.0.1") -> bool:
        """True if an address gets a connection: this machine's kernel answers before the call returns."""
        return state(self.ask(source, to=to)) == ESTABLISHED

    def close(self) -> None:
        for peer in self._peers:
            peer.close()
        self.blocked.close()


def ask(port: int, source: str, *, to: str = "127.0.0.1") -> socket.socket:
    """Requests a connection, and returns at once."""
    peer = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET)
    peer.setblocking(False)
    peer.bind((source, 0))
    peer.connect_ex((to, port))
    return peer


def state(peer: socket.socket) -> int:
    return peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


@pytest.fixture
def door() -> Iterator[Door]:
    with socket.create_server(("127.0.0.1", 0), backlog=200) as sock:
        one = Door(sock)
        yield one
        one.close()


@pytest.fixture
def both_families() -> Iterator[Door]:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=200) as sock:
        one = Door(sock)
        yield one
        one.close()


def test_who_is_ignored_is_not_heard_and_everybody_else_is(door: Door) -> None:
    assert door.hears()
    door.blocked.block(LOUD)
    peer = door.ask()
    assert state(peer) == SYN_SENT, "it is not refused: it asks again in a while"
    assert door.hears(QUIET)


def test_after_a_moment_it_is_heard_again(door: Door) -> None:
    door.blocked.block(LOUD)
    door.clock.advance(BLOCK_MS - 1)
    assert not door.hears()
    door.clock.advance(1)
    assert door.hears()
    assert (len(door.blocked), door.clock.timers) == (0, [])
    door.blocked.block(LOUD)
    assert not door.hears()


def test_each_address_has_its_own_moment(door: Door) -> None:
    door.blocked.block(LOUD)
    door.clock.advance(BLOCK_MS / 2)
    door.blocked.block(QUIET)
    door.blocked.block(LOUD)
    door.clock.advance(BLOCK_MS / 2)
    assert (door.hears(LOUD), door.hears(QUIET)) == (True, False)
    door.clock.advance(BLOCK_MS / 2)
    assert (door.hears(LOUD), door.hears(QUIET)) == (True, True)


def test_connections_that_there_are_go_on(door: Door) -> None:
    before = door.ask()
    assert state(before) == ESTABLISHED
    door.blocked.block(LOUD)
    before.send(b"still here")
    before.shutdown(socket.SHUT_WR)
    assert state(before) != SYN_SENT


def test_one_that_was_accepted_meanwhile_hears_its_peer(door: Door) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        door.blocked.add(sock)
        door.blocked.block(LOUD)
        with socket.create_connection(sock.getsockname()[:2], source_address=(QUIET, 0)) as peer:
            accepted, _ = sock.accept()
            with accepted:
                door.blocked.block(QUIET)
                peer.sendall(b"hello")
                assert accepted.recv(5) == b"hello"
                peer.shutdown(socket.SHUT_WR)
                assert accepted.recv(5) == b""


@pytest.mark.parametrize(
    ("ignored", "source", "to"),
    [(OTHER, OTHER, "::1"), (f"::ffff:{LOUD}", LOUD, "127.0.0.1"), (f"{OTHER}%lo", OTHER, "::1")],
)
def test_a_socket_of_both_families_has_addresses_of_both(
    ignored: str, source: str, to: str, both_families: Door
) -> None:
    both_families.blocked.block("2001:db8::1")
    assert both_families.hears(source, to=to)
    both_families.blocked.block(ignored)
    assert not both_families.hears(source, to=to)
    assert both_families.hears(QUIET)


def test_many_addresses_at_once(door: Door) -> None:
    for number in range(2 * MAX_BLOCKED):
        door.blocked.block(f"127.0.1.{number}")
    assert len(door.blocked) == MAX_BLOCKED
    assert not door.hears("127.0.1.0")
    assert not door.hears(f"127.0.1.{MAX_BLOCKED - 1}")
    assert door.hears(f"127.0.1.{MAX_BLOCKED}"), "there is room for so many"
    door.clock.advance(BLOCK_MS)
    assert door.hears("127.0.1.0")


def test_a_kernel_without_filters_hears_everybody(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syn_filter, "IS_KNOWN", False)
    door.blocked.block(LOUD)
    assert door.hears()
    assert not door.clock.timers


def test_a_kernel_that_refuses_the_filter_hears_everybody(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syn_filter, "SO_ATTACH_FILTER", -1)
    door.blocked.block(LOUD)
    assert door.hears()
    door.clock.advance(BLOCK_MS)
    assert not door.clock.timers


def test_after_its_close_nothing_is_left(door: Door) -> None:
    door.blocked.block(LOUD)
    door.blocked.close()
    assert not door.clock.timers


async def test_a_broker_ignores_who_surges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_addresses, "BLOCK_MS", LONG_MS)
    async with InProcess(tmp_path, {"odradek.connection.surge.rate.per.ip": "1"}) as broker:
        port = broker.server.advertised[0].port
        peers: list[socket.socket] = []
        while not peers or state(peers[-1]) == ESTABLISHED:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            peers.append(ask(port, LOUD))
        assert len(peers) > UNBLOCKED_SECONDS
        peers.append(ask(port, QUIET))
        assert state(peers[-1]) == ESTABLISHED
        for peer in peers:
            peer.close()

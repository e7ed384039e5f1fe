"""Tests brokers by node id: connections are opened when needed and opened again when lost, but not forever."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from client.address import Address
from client.errors import ConnectionClosed, HandshakeFailed, PeerUnavailable, RequestTimedOut, UnsupportedVersion
from client.pool import Peer, Peers
from client.settings import Settings
from protocol.backoff import Backoff
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataResponse
from protocol.messages.vote import VoteRequest, VoteResponse
from tests.client.scripted import METADATA, Script, Talk, answer_all, metadata, scripted
from tests.client.talk import api_versions
from tests.clock import ManualClock

NOWHERE = Address("nowhere", 9)
BACKOFF = Backoff(initial_ms=50, max_ms=1000, jitter=0.2)
SETTINGS = Settings(connect_timeout_ms=300, backoff=BACKOFF)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(ahead_ms=5_000_000)


class Dials:
    """The event loop's attempts to connect: the first attempts are refused, later attempts connect for real."""

    def __init__(self, clock: ManualClock, failures: int = 1 << 30) -> None:
        self.failures = failures
        self.at_ms: list[int] = []
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._connect = self._loop.create_connection
        setattr(self._loop, "create_connection", self)  # noqa: B010  # a method, to mypy

    async def __call__(self, *args: Any, **options: Any) -> object:
        self.at_ms.append(self._clock.monotonic_ms())
        await asyncio.sleep(0)
        if len(self.at_ms) <= self.failures:
            raise ConnectionRefusedError(f"refusal {len(self.at_ms)}")
        return await self._connect(*args, **options)


def half() -> float:
    """Returns the draw for which waits are neither lengthened nor shortened."""
    return 0.5


@asynccontextmanager
async def peer_of(script: Script, clock: ManualClock, settings: Settings = SETTINGS) -> AsyncIterator[Peer]:
    async with scripted(script) as address:
        peer = Peer(address, settings, clock, half)
        yield peer
        await peer.close()


def ask(peer: Peer, timeout_ms: int = 5000, max_dials: int | None = None) -> asyncio.Task[MetadataResponse]:
    return asyncio.create_task(peer.send(METADATA, MetadataResponse, timeout_ms=timeout_ms, max_dials=max_dials))


async def test_all_who_ask_share_a_connection(clock: ManualClock) -> None:
    async with peer_of(answer_all, clock) as peer:
        assert not peer.is_connected
        answers = await asyncio.gather(*(ask(peer) for _ in range(20)))
        assert {answer.cluster_id for answer in answers} == {"1"}
        assert peer.is_connected


async def test_a_lost_connection_is_made_again_for_the_next_request(clock: ManualClock) -> None:
    async def once(talk: Talk) -> None:
        await talk.greet()
        await talk.reply(await talk.request(), metadata(str(talk.number)))
        talk.writer.close()

    async with peer_of(once, clock) as peer:
        assert (await ask(peer)).cluster_id == "1"
        lost = (await peer.connection(timeout_ms=1)) if peer.is_connected else None
        if lost is not None:
            await asyncio.wait([lost._lost])
        assert (await ask(peer)).cluster_id == "2"


async def test_a_request_that_was_sent_is_not_sent_again(clock: ManualClock) -> None:
    requests = []

    async def swallow(talk: Talk) -> None:
        await talk.greet()
        requests.append(await talk.request())

    async with peer_of(swallow, clock) as peer:
        with pytest.raises(PeerUnavailable) as raised:
            await ask(peer)
        assert raised.value.sent
    assert len(requests) == 1


async def test_connecting_is_tried_again_after_longer_and_longer_waits(clock: ManualClock) -> None:
    dials = Dials(clock, failures=7)
    async with peer_of(answer_all, clock) as peer:
        answer = ask(peer)
        while len(dials.at_ms) < 8:
            clock.advance(1)
            await asyncio.sleep(0)
        assert (await answer).cluster_id == "1"
    waits = [later - earlier for earlier, later in pairwise(dials.at_ms)]
    # A turn of the loop is a millisecond here, and it takes some to dial.
    assert [wait - wait % 50 for wait in waits] == [50, 100, 200, 400, 800, 1000, 1000]


async def test_connecting_has_an_end(clock: ManualClock) -> None:
    Dials(clock)
    peer = Peer(NOWHERE, SETTINGS, clock, half)
    answer = ask(peer, timeout_ms=240)
    while not answer.done():
        clock.advance(10)
        await asyncio.sleep(0)
    with pytest.raises(PeerUnavailable, match="refusal 3; no other connection within 240 ms"):
        await answer
    await peer.close()


async def test_connecting_ends_after_as_many_tries_as_are_allowed(clock: ManualClock) -> None:
    dials = Dials(clock)
    peer = Peer(NOWHERE, SETTINGS, clock, half)
    with pytest.raises(PeerUnavailable, match="refusal 1"):
        await ask(peer, max_dials=1)
    assert len(dials.at_ms) == 1
    await peer.close()


async def test_a_peer_that_lets_nobody_in_is_not_tried_again(clock: ManualClock) -> None:
    talks = []

    async def refuse(talk: Talk) -> None:
        talks.append(talk)
        await talk.reply(await talk.request(), api_versions(error_code=int(ErrorCode.REBOOTSTRAP_REQUIRED)))

    async with peer_of(refuse, clock) as peer:
        with pytest.raises(HandshakeFailed):
            await ask(peer)
    assert len(talks) == 1


async def test_a_request_that_the_peer_does_not_know_leaves_the_connection(clock: ManualClock) -> None:
    async with peer_of(answer_all, clock) as peer:
        with pytest.raises(UnsupportedVersion):
            await peer.send(VoteRequest(cluster_id=None, topics=[]), VoteResponse, timeout_ms=100)
        assert (await ask(peer)).cluster_id == "1"


async def test_a_half_open_peer_is_left_for_a_new_connection(clock: ManualClock) -> None:
    received = asyncio.Event()

    async def first_is_silent(talk: Talk) -> None:
        if talk.number > 1:
            await answer_all(talk)
        await talk.greet()
        await talk.request()
        received.set()
        await talk.gone()

    async with peer_of(first_is_silent, clock) as peer:
        answer = ask(peer, timeout_ms=100)
        await received.wait()
        clock.advance(100)
        with pytest.raises(RequestTimedOut):
            await answer
        assert (await ask(peer)).cluster_id == "2"


async def test_a_connection_that_was_idle_for_long_is_not_used_again(clock: ManualClock) -> None:
    async with peer_of(answer_all, clock, SETTINGS._replace(max_idle_ms=1000)) as peer:
        assert (await ask(peer)).cluster_id == "1"
        clock.advance(1000)
        assert (await ask(peer)).cluster_id == "1"
        clock.advance(1001)
        assert (await ask(peer)).cluster_id == "2"


async def test_a_dial_that_fails_in_the_turn_in_which_its_peer_is_closed_is_not_reported_as_unseen(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen: list[dict[str, object]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unseen.append(context))
    peers: list[Peer] = []

    async def refuse(*_: object, **__: object) -> None:
        await asyncio.sleep(0)
        closing.append(asyncio.create_task(peers[0].close()))
        raise ConnectionRefusedError("refused")

    closing: list[asyncio.Task[None]] = []
    monkeypatch.setattr(loop, "create_connection", refuse)
    peers.append(Peer(NOWHERE, SETTINGS, clock, half))
    with pytest.raises(ConnectionClosed):
        await ask(peers[0])
    await asyncio.gather(*closing)
    peers.clear()
    gc.collect()
    assert unseen == []


async def test_closing_ends_who_waits_for_a_connection(clock: ManualClock) -> None:
    Dials(clock)
    peer = Peer(NOWHERE, SETTINGS, clock, half)
    answer = ask(peer)
    await clock.next_timer()
    await peer.close()
    with pytest.raises(ConnectionClosed):
        await answer
    with pytest.raises(ConnectionClosed):
        await ask(peer)


# Peers.


@asynccontextmanager
async def peers_of(clock: ManualClock) -> AsyncIterator[Peers]:
    peers = Peers(SETTINGS, clock, half)
    yield peers
    await peers.close()


async def test_a_node_is_asked_where_it_is_said_to_be(clock: ManualClock) -> None:
    async def other(talk: Talk) -> None:
        await talk.greet()
        await talk.reply(await talk.request(), metadata("other"))
        await talk.gone()

    async with scripted(answer_all) as here, scripted(other) as there, peers_of(clock) as peers:
        peers.place({1: here})
        assert (await peers.node(1).send(METADATA, MetadataResponse, timeout_ms=100)).cluster_id == "1"
        peers.place({1: here})
        assert peers.node(1).is_connected
        peers.place({1: there})
        assert (await peers.node(1).send(METADATA, MetadataResponse, timeout_ms=100)).cluster_id == "other"
        peers.place({})
        with pytest.raises(PeerUnavailable, match="node 1: has no address"):
            peers.node(1)


async def test_what_was_asked_of_a_node_that_is_gone_ends(clock: ManualClock) -> None:
    received = asyncio.Event()

    async def silent(talk: Talk) -> None:
        await talk.greet()
        await talk.request()
        received.set()
        await talk.gone()

    async with scripted(silent) as address, peers_of(clock) as peers:
        peers.place({1: address})
        answer = asyncio.create_task(peers.node(1).send(METADATA, MetadataResponse, timeout_ms=100))
        await received.wait()
        peers.place({})
        with pytest.raises(ConnectionClosed):
            await answer

"""Tests blocking sockets: the result or the error that a command gets, whatever the broker does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from client.address import Address
from client.blocking import BlockingPeer, BlockingPeers, PlainClock, drive
from client.errors import PeerError, PeerUnavailable, RequestTimedOut
from client.settings import Settings
from protocol.errors import ProtocolError
from protocol.messages.metadata import MetadataResponse
from protocol.messages.produce import ProduceRequest
from tests.client.scripted import METADATA, PATIENCE_S, Script, Talk, answer_all, metadata, scripted
from tests.client.talk import answer

TIME_MS = PATIENCE_S * 1000
SETTINGS = Settings(connect_timeout_ms=TIME_MS)


@asynccontextmanager
async def peer_of(script: Script) -> AsyncIterator[BlockingPeer]:
    async with scripted(script) as address:
        peer = BlockingPeer(address, SETTINGS, PlainClock())
        yield peer
        peer.close()


async def cluster_id(peer: BlockingPeer, timeout_ms: int = TIME_MS) -> str | None:
    """Requests the cluster id in a thread, because the broker runs on the event loop."""
    ask = peer.send(METADATA, MetadataResponse, timeout_ms=timeout_ms)
    return (await asyncio.to_thread(drive, ask)).cluster_id


async def test_requests_share_a_connection() -> None:
    async with peer_of(answer_all) as peer:
        assert [await cluster_id(peer), await cluster_id(peer)] == ["1", "1"]


async def test_an_answer_may_come_in_pieces_and_be_larger_than_the_buffer() -> None:
    name = "x" * 30_000

    async def script(talk: Talk) -> None:
        await talk.greet()
        request = await talk.request()
        large = MetadataResponse(brokers=[], topics=[], cluster_id=name)
        data = answer(large, request.version, request.header.correlation_id)
        for at in range(0, len(data), 10_000):
            await talk.write(data[at : at + 10_000])
        await talk.gone()

    async with peer_of(script) as peer:
        assert await cluster_id(peer) == name


async def test_a_connection_that_was_lost_is_made_anew_for_the_next_request() -> None:
    async def script(talk: Talk) -> None:
        await talk.greet()
        request = await talk.request()
        if talk.number > 1:
            await talk.reply(request, metadata(str(talk.number)))
            await talk.gone()

    async with peer_of(script) as peer:
        with pytest.raises(PeerUnavailable, match="the peer closed the connection"):
            await cluster_id(peer)
        assert await cluster_id(peer) == "2"


async def test_a_request_without_an_answer_fails_on_a_connection_that_was_lost() -> None:
    request = ProduceRequest(acks=0, timeout_ms=0, topic_data=[])
    closed = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.greet()
        await talk.request()
        talk.writer.close()
        await talk.writer.wait_closed()
        closed.set()

    async with peer_of(script) as peer:
        await asyncio.to_thread(drive, peer.tell(request, timeout_ms=TIME_MS))
        await closed.wait()
        with pytest.raises(PeerUnavailable, match="the connection is lost"):
            for _ in range(3):  # the first is answered by a reset
                await asyncio.to_thread(drive, peer.tell(request, timeout_ms=TIME_MS))


async def test_who_is_silent_is_waited_for_no_longer_than_asked() -> None:
    async def silent(talk: Talk) -> None:
        await talk.greet()
        await talk.gone()

    async with peer_of(silent) as peer:
        with pytest.raises((RequestTimedOut, PeerUnavailable), match=r"within \d+ ms"):
            await cluster_id(peer, timeout_ms=200)


async def test_a_peer_that_speaks_something_else_is_an_error_that_says_so() -> None:
    async def strange(talk: Talk) -> None:
        await talk.request()
        await talk.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await talk.gone()

    async with peer_of(strange) as peer:
        with pytest.raises((PeerError, ProtocolError)):
            await cluster_id(peer)


def test_nobody_at_an_address_is_told_with_it() -> None:
    peer = BlockingPeer(Address("127.0.0.1", 1), SETTINGS, PlainClock())
    with pytest.raises(PeerUnavailable, match=r"127\.0\.0\.1:1: cannot be connected to"):
        drive(peer.send(METADATA, MetadataResponse, timeout_ms=TIME_MS))


def test_an_action_that_needs_a_loop_is_found_out() -> None:
    with pytest.raises(RuntimeError, match="declared concurrent"):
        drive(asyncio.sleep(0))


def test_what_comes_behind_a_failure_is_not_begun() -> None:
    begun: list[int] = []

    async def begin(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise ValueError(number)
        return number

    peers = BlockingPeers(SETTINGS)
    assert drive(peers.together(begin(number) for number in (0, 1))) == [0, 1]
    with pytest.raises(ValueError, match="2"):
        drive(peers.together([begin(2), begin(3)]))
    assert begun == [0, 1, 2]

"""Tests connections over real sockets to a peer that follows a script. Time passes only when a test advances it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from client.address import Address
from client.aio import Connection, connect
from client.errors import ConnectionClosed, HandshakeFailed, PeerUnavailable, RequestTimedOut
from client.settings import Settings
from client.traffic import PeerTraffic
from protocol.errors import ProtocolError
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from protocol.messages.metadata import MetadataResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.client.scripted import METADATA, Script, Talk, answer_all, metadata, scripted
from tests.client.talk import answer
from tests.clock import ManualClock

SETTINGS = Settings(connect_timeout_ms=300)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(ahead_ms=5_000_000)


@asynccontextmanager
async def connected(script: Script, clock: ManualClock, settings: Settings = SETTINGS) -> AsyncIterator[Connection]:
    async with scripted(script) as address:
        connection = await connect(address, settings, clock)
        yield connection
        await connection.close()


def ask(connection: Connection, timeout_ms: int = 1000) -> asyncio.Task[MetadataResponse]:
    return asyncio.create_task(connection.send(METADATA, MetadataResponse, timeout_ms=timeout_ms))


async def test_a_request_gets_its_answer(clock: ManualClock) -> None:
    async with connected(answer_all, clock) as connection:
        assert await connection.send(METADATA, MetadataResponse, timeout_ms=1000) == metadata("1")
        assert connection.is_idle


async def test_what_goes_over_connections_is_counted(clock: ManualClock) -> None:
    traffic = PeerTraffic()
    async with connected(answer_all, clock, SETTINGS._replace(traffic=traffic)) as connection:
        before = (traffic.sent_bytes, traffic.received_bytes)
        for _ in range(3):
            await connection.send(METADATA, MetadataResponse, timeout_ms=1000)
    assert (traffic.requests, traffic.responses) == (3, 3)
    assert traffic.sent_bytes > before[0] > 0
    assert traffic.received_bytes > before[1] > 0


async def test_a_thousand_requests_at_once_are_answered_in_their_order(clock: ManualClock) -> None:
    async def count(talk: Talk) -> None:
        await talk.greet()
        for number in range(1000):
            await talk.reply(await talk.request(), metadata(str(number)))
        await talk.gone()

    async with connected(count, clock) as connection:
        answers = await asyncio.gather(*(ask(connection) for _ in range(1000)))
        assert [response.cluster_id for response in answers] == [str(number) for number in range(1000)]


# Connections that come to nothing.


async def close_at_once(talk: Talk) -> None:
    """Closes the connection without sending a byte."""


async def close_after_hello(talk: Talk) -> None:
    await talk.request()


async def close_within_the_answer_to_hello(talk: Talk) -> None:
    await talk.request()
    await talk.write(b"\0\0\0\x20\0\0")


@pytest.mark.parametrize("script", [close_at_once, close_after_hello, close_within_the_answer_to_hello])
async def test_a_peer_that_closes_before_it_is_ready_is_unavailable(script: Script, clock: ManualClock) -> None:
    async with scripted(script) as address:
        with pytest.raises(PeerUnavailable) as raised:
            await connect(address, SETTINGS, clock)
        assert raised.value.peer == str(address)
        assert not raised.value.sent


async def test_who_is_not_there_is_unavailable(clock: ManualClock) -> None:
    async with scripted(close_at_once) as address:
        pass
    with pytest.raises(PeerUnavailable, match=f"^{address}: cannot be connected to: "):
        await connect(address, SETTINGS, clock)


@pytest.mark.parametrize("address", [Address("127.0.0.1", 1 << 20), Address("127.0.0.1", -1), Address("a\0b", 1)])
async def test_what_is_no_address_is_unavailable(address: Address, clock: ManualClock) -> None:
    with pytest.raises(PeerUnavailable):
        await connect(address, SETTINGS, clock)


async def test_a_peer_that_says_nothing_to_hello_is_unavailable_when_its_time_is_over(clock: ManualClock) -> None:
    greeted = asyncio.Event()

    async def silent(talk: Talk) -> None:
        await talk.request()
        greeted.set()
        await talk.gone()

    async with scripted(silent) as address:
        connecting = asyncio.create_task(connect(address, SETTINGS, clock))
        await greeted.wait()
        clock.advance(299)
        assert not connecting.done()
        clock.advance(1)
        with pytest.raises(PeerUnavailable, match="ApiVersionsRequest v5 is not answered within 300 ms"):
            await connecting


async def test_a_connection_that_is_never_made_is_given_up(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = asyncio.Event()

    async def nowhere(*_: object, **__: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", nowhere)
    connecting = asyncio.create_task(connect(Address("h", 1), SETTINGS, clock))
    assert await clock.next_timer() == 300
    clock.advance(300)
    with pytest.raises(PeerUnavailable, match="no connection within 300 ms"):
        await connecting
    await cancelled.wait()


async def test_who_is_cancelled_while_it_connects_leaves_no_connection(clock: ManualClock) -> None:
    greeted, gone = asyncio.Event(), asyncio.Event()

    async def silent(talk: Talk) -> None:
        await talk.request()
        greeted.set()
        try:
            await talk.gone()
        finally:
            gone.set()

    async with scripted(silent) as address:
        connecting = asyncio.create_task(connect(address, SETTINGS, clock))
        await greeted.wait()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await gone.wait()


@pytest.mark.parametrize(
    "garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\0", b"\0\0\0\x08\0\0\0\0\0\x23\x7f\xff"]
)
async def test_a_peer_that_speaks_something_else_is_named(garbage: bytes, clock: ManualClock) -> None:
    async def other(talk: Talk) -> None:
        await talk.request()
        await talk.write(garbage)
        await talk.gone()

    async with scripted(other) as address:
        with pytest.raises((ProtocolError, HandshakeFailed), match=f"^{address}: "):
            await connect(address, SETTINGS, clock)


# Connections that end.


async def close_before_the_answer(talk: Talk) -> None:
    await talk.greet()
    await talk.request()


async def close_within_the_answer(talk: Talk) -> None:
    await talk.greet()
    request = await talk.request()
    await talk.write(answer(metadata("c"), request.version, request.header.correlation_id)[:-3])


async def reset_before_the_answer(talk: Talk) -> None:
    await talk.greet()
    await talk.request()
    talk.writer.transport.abort()


@pytest.mark.parametrize("script", [close_before_the_answer, close_within_the_answer, reset_before_the_answer])
async def test_a_peer_that_closes_before_the_answer_ends_all_requests(script: Script, clock: ManualClock) -> None:
    async with connected(script, clock) as connection:
        errors = await asyncio.gather(ask(connection), ask(connection), return_exceptions=True)
        assert [type(error) for error in errors] == [PeerUnavailable, PeerUnavailable]
        with pytest.raises(PeerUnavailable) as raised:
            await ask(connection)
        assert not raised.value.sent


async def test_a_peer_that_never_answers_is_closed_when_the_requests_time_is_over(clock: ManualClock) -> None:
    received, gone = asyncio.Event(), asyncio.Event()

    async def silent(talk: Talk) -> None:
        await talk.greet()
        await talk.request()
        received.set()
        await talk.gone()
        gone.set()

    async with connected(silent, clock) as connection:
        answer = ask(connection, timeout_ms=700)
        await received.wait()
        clock.advance(699)
        await asyncio.sleep(0)
        assert not answer.done()
        clock.advance(1)
        with pytest.raises(RequestTimedOut, match="no answer to MetadataRequest v12 within 700 ms"):
            await answer
        assert not connection.is_ready
        await gone.wait()


async def test_a_late_answer_is_not_taken_for_another_requests(clock: ManualClock) -> None:
    late = asyncio.Event()
    received = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await talk.greet()
        first, second = await talk.request(), await talk.request()
        received.set()
        await late.wait()
        third = await talk.request()
        for number, request in enumerate((first, second, third), 1):
            await talk.reply(request, metadata(str(number)))
        await talk.gone()

    async with connected(slow, clock) as connection:
        first, second = ask(connection, timeout_ms=1000), ask(connection, timeout_ms=10)
        await received.wait()
        clock.advance(10)
        with pytest.raises(RequestTimedOut):
            await second
        third = ask(connection)
        late.set()
        assert [(await first).cluster_id, (await third).cluster_id] == ["1", "3"]


async def test_who_is_cancelled_leaves_the_connection_to_the_others(clock: ManualClock) -> None:
    received, go_on = asyncio.Event(), asyncio.Event()

    async def slow(talk: Talk) -> None:
        await talk.greet()
        requests = [await talk.request(), await talk.request()]
        received.set()
        await go_on.wait()
        for number, request in enumerate(requests, 1):
            await talk.reply(request, metadata(str(number)))
        await talk.gone()

    async with connected(slow, clock) as connection:
        first, second = ask(connection), ask(connection)
        await received.wait()
        first.cancel()
        await asyncio.wait([first])
        go_on.set()
        assert (await second).cluster_id == "2"


async def test_a_flood_ends_the_connection(clock: ManualClock) -> None:
    async def flood(talk: Talk) -> None:
        await talk.greet()
        await talk.request()
        while True:
            await talk.write(answer(metadata("c"), 12, 7) * 1000)

    async with connected(flood, clock) as connection:
        errors = await asyncio.gather(ask(connection), ask(connection), return_exceptions=True)
        assert [type(error) for error in errors] == [ProtocolError, PeerUnavailable]
        assert "an answer has correlation id 7" in str(connection.error)
        assert not connection.is_ready


async def test_closing_ends_what_is_unanswered(clock: ManualClock) -> None:
    received = asyncio.Event()

    async def silent(talk: Talk) -> None:
        await talk.greet()
        await talk.request()
        received.set()
        await talk.gone()

    async with connected(silent, clock) as connection:
        answer = ask(connection)
        await received.wait()
        await connection.close()
        with pytest.raises(ConnectionClosed, match="this side closed the connection"):
            await answer
        await connection.close()
        with pytest.raises(ConnectionClosed):
            await ask(connection)


# Requests without answers.


def silent_produce(size_bytes: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(size_bytes))
    return ProduceRequest(acks=0, timeout_ms=0, topic_data=[TopicProduceData(name="t", partition_data=[data])])


async def test_what_was_told_before_a_close_arrives(clock: ManualClock) -> None:
    arrived: list[int] = []
    all_arrived = asyncio.Event()

    async def listen(talk: Talk) -> None:
        await talk.greet()
        for _ in range(20):
            request = (await talk.request()).request
            assert isinstance(request, ProduceRequest)
            arrived.append(len(request.topic_data[0].partition_data[0].records or b""))
        all_arrived.set()
        await talk.gone()

    async with connected(listen, clock) as connection:
        for _ in range(20):
            await connection.tell(silent_produce(50_000), timeout_ms=1000)
        await connection.close()
        await all_arrived.wait()
    assert arrived == [50_000] * 20


async def test_a_peer_that_does_not_read_holds_up_who_tells_until_their_time_is_over(clock: ManualClock) -> None:
    async def deaf(talk: Talk) -> None:
        await talk.greet()
        await asyncio.Event().wait()

    async def tell_on(connection: Connection) -> None:
        while True:
            await connection.tell(silent_produce(500_000), timeout_ms=100)

    async with scripted(deaf) as address:
        connection = await connect(address, SETTINGS, clock)
        telling = asyncio.create_task(tell_on(connection))
        while connection._client.writable:  # noqa: ASYNC110  # nobody tells that the kernel's buffers are full
            await asyncio.sleep(0)
        while not telling.done():
            clock.advance(50)
            await asyncio.sleep(0)
        with pytest.raises(RequestTimedOut, match="no room to send ProduceRequest within 100 ms"):
            await telling
        closing = asyncio.create_task(connection.close())
        await clock.next_timer()
        clock.advance(1000)
        await closing


async def test_records_of_answers_stay_as_they_came(clock: ManualClock) -> None:
    sizes = [10, 100_000, 0, 3_000_000, 60_000, 10]

    async def serve(talk: Talk) -> None:
        await talk.greet()
        for number, size in enumerate(sizes):
            records = bytes([number]) * size
            partition = PartitionData(partition_index=0, error_code=0, high_watermark=0, records=records)
            topic = FetchableTopicResponse(topic="t", partitions=[partition])
            await talk.reply(await talk.request(), FetchResponse(responses=[topic]))
        await talk.gone()

    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[])
    async with connected(serve, clock) as connection:
        answers = await asyncio.gather(*(connection.send(fetch, FetchResponse, timeout_ms=1000) for _ in sizes))
        records = [answer.responses[0].partitions[0].records for answer in answers]
        assert [bytes(view or b"") for view in records] == [bytes([number]) * size for number, size in enumerate(sizes)]

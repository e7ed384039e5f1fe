"""Tests answers that peers don't read: their memory is bounded, and so is the time of a peer that reads slowly."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import pytest

from broker.network.connection import WRITE_HIGH_WATER_BYTES
from broker.network.connection_lines import ConnectionLines
from broker.network.stalls import MIN_PROGRESS_BYTES
from broker.network.unread import UnreadAnswers, counted_bytes
from broker.request.log_limiter import LogLimiter
from protocol.connection import MANY_BUFFERS, SMALL_BYTES, joined
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import NO_UUID, Buffer
from tests.broker.inprocess import Client, InProcess, request_frame
from tests.broker.test_listener import HELLO, waiting_fetch
from tests.log_lines import Line
from tests.waiting import until

MIB = 1 << 20
NAMES = 500


def answer_of_100_kb(version: int = 9) -> bytes:
    """Returns a request for an answer of 100 kB."""
    topics = [MetadataRequestTopic(name=f"{number:0200}", topic_id=NO_UUID) for number in range(NAMES)]
    return request_frame(MetadataRequest(topics=topics, allow_auto_topic_creation=False), version)


async def ask_for_100_kb(client: Client) -> None:
    """Returns once the request is answered, or the connection is cut off."""
    before_bytes = client.wire.unread_bytes
    client.send(answer_of_100_kb())
    await until(lambda: client.wire.unread_bytes != before_bytes or client.wire.closing)


def deaf(served: InProcess, more_than: int = WRITE_HIGH_WATER_BYTES) -> Client:
    """Returns a client whose socket accepts no bytes."""
    client = served.client()

    def writelines(buffers: Any) -> None:
        client.wire.unread_bytes += sum(map(len, buffers))
        if client.wire.unread_bytes > more_than:
            client.connection.pause_writing()

    client.wire.writelines = writelines  # type: ignore[method-assign, assignment]
    return client


def take(client: Client) -> None:
    """Reads all available bytes."""
    client.wire.unread_bytes = 0
    client.connection.resume_writing()


async def test_answers_that_nobody_takes_are_bounded_over_all_connections(tmp_path: Path, lines: list[Line]) -> None:
    async with InProcess(tmp_path, {"odradek.unread.answers.max.bytes": str(MIB)}) as served:
        unread = served.server.listeners[0].unread
        clients = [deaf(served) for _ in range(30)]
        for client in clients:
            await ask_for_100_kb(client)
            assert unread.held_bytes <= MIB
        cut = [client.wire.aborted for client in clients]
        assert cut == sorted(cut, reverse=True), "who has waited longest goes first"
        assert 0 < cut.count(False) < 12
        assert "odradek.unread.answers.max.bytes" in str(lines[0].fields["reason"])


async def test_answers_that_are_taken_make_room(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"odradek.unread.answers.max.bytes": str(MIB)}) as served:
        unread = served.server.listeners[0].unread
        clients = [deaf(served) for _ in range(30)]
        for client in clients:
            await ask_for_100_kb(client)
            take(client)
            assert unread.held_bytes == 0
        assert not any(client.wire.aborted for client in clients)


async def test_a_connection_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client = deaf(served)
        await ask_for_100_kb(client)
        assert served.server.listeners[0].unread.held_bytes > 100_000
        client.connection.connection_lost(None)
        assert served.server.listeners[0].unread.held_bytes == 0


async def test_answers_that_come_later_than_their_requests_count_as_well(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client, unread = deaf(served, more_than=0), served.server.listeners[0].unread
        client.send(waiting_fetch("t", 1))
        assert not unread.held_bytes
        await until(lambda: unread.held_bytes)
        assert unread.held_bytes == client.wire.unread_bytes


async def test_answers_to_requests_that_were_kept_count_as_well(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client, unread = deaf(served), served.server.listeners[0].unread
        client.connection.pause_writing()
        client.send(answer_of_100_kb())
        client.connection.resume_writing()
        await until(lambda: unread.held_bytes)
        assert unread.held_bytes > 100_000


def test_records_in_mapped_files_are_not_counted() -> None:
    mapped = memoryview(mmap.mmap(-1, 8192))
    assert counted_bytes([b"head", mapped[:5000], bytearray(10), memoryview(b"copied")]) == 20


class Lonely:
    """The part of a connection that the limiter needs."""

    peer = "one of many"

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self.is_cut_off = False

    def cut_off(self) -> None:
        self.is_cut_off = True


def held(unread: UnreadAnswers, ip: str, size_bytes: int) -> Lonely:
    connection = Lonely(ip)
    slow: Any = connection
    unread.add(slow, size_bytes)
    return connection


def test_the_address_that_holds_most_loses_its_longest_waiting() -> None:
    unread = UnreadAnswers(1000, ConnectionLines(LogLimiter()))
    slow = held(unread, "slow", 300)
    first, second = held(unread, "hostile", 200), held(unread, "hostile", 200)
    third = held(unread, "hostile", 400)
    assert [connection.is_cut_off for connection in (slow, first, second, third)] == [False, True, False, False]


def test_one_answer_may_be_larger_than_the_limit() -> None:
    unread = UnreadAnswers(1000, ConnectionLines(LogLimiter()))
    large = held(unread, "one", 5000)
    assert not large.is_cut_off
    other = held(unread, "other", 10)
    assert (large.is_cut_off, other.is_cut_off) == (True, False)


# Time


async def test_a_byte_of_a_frame_now_and_then_is_activity_and_still_has_its_time(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client, listener = served.client(), served.server.listeners[0]
        frame = request_frame(HELLO, 3)
        for number in range(6):
            client.send(frame[number : number + 1])
            listener.close_idle()
            listener.close_stalled(number * 9_000, 30_000)
            assert client.wire.closing == (number * 9_000 >= 30_000)


@pytest.mark.parametrize(("taken_bytes", "is_cut_off"), [(MIN_PROGRESS_BYTES, False), (1, True)])
async def test_a_peer_that_takes_its_answer_slowly_is_not_idle(
    taken_bytes: int, is_cut_off: bool, tmp_path: Path
) -> None:
    async with InProcess(tmp_path) as served:
        client, listener = deaf(served), served.server.listeners[0]
        client.wire.unread_bytes = 10 * MIB
        listener.close_idle()
        for _ in range(3):
            client.wire.unread_bytes -= taken_bytes
            listener.close_idle()
        assert client.wire.aborted == is_cut_off


def test_an_answer_of_a_million_buffers_is_written_as_few() -> None:
    large = [bytes([number]) * SMALL_BYTES for number in range(3)]
    answers: list[Buffer] = [*[b"ab"] * MANY_BUFFERS, large[0], *[b"c"] * MANY_BUFFERS, *large[1:]]
    written = joined(answers)
    assert b"".join(written) == b"".join(answers)
    assert [len(buffer) for buffer in written] == [
        2 * MANY_BUFFERS,
        SMALL_BYTES,
        MANY_BUFFERS,
        SMALL_BYTES,
        SMALL_BYTES,
    ]
    assert written[1] is large[0]


def test_an_answer_of_few_buffers_is_written_as_it_is() -> None:
    answers: list[Buffer] = [b"ab"] * MANY_BUFFERS
    assert joined(answers) is answers

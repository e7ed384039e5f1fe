"""Tests the memory of unanswered requests that clients can make the broker hold: bounded in total, by address, and in
time."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.network.connection import READ_AHEAD_BYTES
from broker.network.request_memory import (
    OBJECT_BYTES,
    RECEIVE_BUFFER_BYTES,
    SHORT_READ_BYTES,
    RequestMemory,
    cost_bytes,
)
from broker.network.stalls import MIN_PROGRESS_BYTES
from protocol.connection import FIRST_BYTES
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.building import build
from protocol.records.record import Record
from tests.broker.inprocess import InProcess, request_frame
from tests.broker.test_listener import HELLO, all_frames, correlation_ids, produce_frame, waiting_fetch
from tests.log_lines import Line
from tests.waiting import until

MIB = 1 << 20
LIMIT = 2 * MIB
TIMEOUT_MS = 1_000
HELLO_FRAME = request_frame(HELLO, 3)
OPTIONS = {"socket.request.max.bytes": str(LIMIT), "queued.max.request.bytes": str(LIMIT)}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[InProcess]:
    """Yields a broker that holds at most two megabytes, all of which one address may use."""
    async with InProcess(tmp_path, {**OPTIONS, "odradek.queued.request.share.per.ip": "1"}) as broker:
        # Records that are looked at by a thread would be held until then.
        await broker.create_topic("t", max_message_bytes=str(LIMIT), odradek_records_check="false")
        yield broker


def memory_of(served: InProcess) -> RequestMemory:
    return served.server.listeners[0].memory


def large_frame(size: int) -> bytes:
    """Returns a Produce with this number of bytes of records."""
    records = bytes(build([Record(timestamp=1, value=bytes(size))]))
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
    return request_frame(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 12)


class Sender:
    """A client that sends a frame as far as the broker reads it."""

    def __init__(self, served: InProcess, frame: bytes) -> None:
        self.client = served.client()
        self.left = frame

    def send(self, most: int = 1 << 30) -> None:
        most = min(most, len(self.left))
        while most and self.client.wire.reading and not self.client.wire.closing:
            room = len(self.client.connection.get_buffer(-1))
            count = min(room, most)
            self.client.send(self.left[:count])
            self.left = self.left[count:]
            most -= count


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_has_come_of_requests_is_counted_until_they_are_whole(served: InProcess) -> None:
    memory, frame = memory_of(served), large_frame(MIB)
    sender = Sender(served, frame)
    sender.send(5)
    assert FIRST_BYTES <= memory.held_bytes <= 2 * FIRST_BYTES
    sender.send(300_000)
    assert 300_000 <= memory.held_bytes <= 600_010
    sender.send()
    assert len(await all_frames(sender.client, 1)) == 1
    assert memory.held_bytes == 0


async def test_half_frames_hold_no_more_than_the_limit_and_one_frame(served: InProcess) -> None:
    memory = memory_of(served)
    senders = [Sender(served, large_frame(LIMIT - 200)[:-1]) for _ in range(50)]
    for _ in range(20):
        for sender in senders:
            sender.send(200_000)
    assert memory.held_bytes <= 2 * LIMIT + 2 * RECEIVE_BUFFER_BYTES + 50 * SHORT_READ_BYTES
    assert sum(sender.client.connection.kept_bytes for sender in senders) == memory.held_bytes
    for sender in senders:
        sender.client.connection.connection_lost(None)
    assert memory.held_bytes == 0
    assert not memory.shares


async def test_requests_that_come_whole_are_answered_though_memory_is_short(served: InProcess) -> None:
    memory = memory_of(served)
    senders = [Sender(served, large_frame(LIMIT - 200)[:-1]) for _ in range(4)]
    for sender in senders:
        sender.send()
    assert memory.is_short
    other = served.client()
    assert len(other.connection.get_buffer(-1)) == SHORT_READ_BYTES
    other.send(HELLO_FRAME)
    assert len(other.wire.take()) == 1
    for sender in senders:
        sender.client.connection.connection_lost(None)
    assert len(other.connection.get_buffer(-1)) == RECEIVE_BUFFER_BYTES


async def test_large_requests_that_came_at_once_are_all_answered_one_after_the_other(served: InProcess) -> None:
    """All memory is used by incomplete frames; one continues beyond the limit, then the next."""
    senders = [Sender(served, large_frame(MIB)) for _ in range(12)]
    for _ in range(3):
        for sender in senders:
            sender.send(250_000)
    for _ in range(100):
        for sender in senders:
            sender.send()
        await settled()
    assert [len(sender.client.wire.take()) for sender in senders] == [1] * 12
    assert memory_of(served).held_bytes == 0


async def test_who_goes_on_beyond_the_limit_and_goes_lets_the_next_one(served: InProcess) -> None:
    senders = [Sender(served, large_frame(LIMIT - 200)) for _ in range(4)]
    for sender in senders:
        sender.send(LIMIT - 300)
    stuck = [sender for sender in senders if sender.left and not sender.client.wire.reading]
    assert len(stuck) >= 2
    for sender in senders:
        if sender not in stuck:
            sender.client.connection.connection_lost(None)
    await settled()
    for _ in range(10):
        for sender in stuck:
            sender.send()
        await settled()
    assert [len(sender.client.wire.take()) for sender in stuck] == [1] * len(stuck)


async def test_an_address_has_its_share_and_leaves_the_rest_to_others(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {**OPTIONS, "odradek.queued.request.share.per.ip": "0.25"}) as served:
        memory = memory_of(served)
        first, *greedy = [Sender(served, large_frame(LIMIT - 200)[:-1]) for _ in range(8)]
        for sender in greedy:
            sender.send(64 * 1024)
            sender.send()
        assert memory.shares["127.0.0.1"].held_bytes < LIMIT + LIMIT // 4 + 8 * RECEIVE_BUFFER_BYTES
        assert [sender.client.wire.reading for sender in greedy].count(True) == 1
        other = memory.join("10.0.0.9")
        memory.hold(memory.shares["127.0.0.1"], LIMIT // 4 - memory.shares["127.0.0.1"].held_bytes)
        assert memory.grants(first.client.connection, other, LIMIT // 4)
        assert not memory.grants(greedy[1].client.connection, memory.shares["127.0.0.1"], 1)


async def test_no_more_is_read_ahead_than_a_constant_while_an_answer_waits(served: InProcess) -> None:
    client = Sender(served, waiting_fetch("t", 60_000) + large_frame(MIB))
    client.send()
    assert not client.client.wire.reading
    assert client.client.connection.kept_bytes <= 2 * READ_AHEAD_BYTES + FIRST_BYTES
    served.client().send(produce_frame("t"))
    await until(lambda: client.client.wire.reading)
    client.send()
    assert len(await all_frames(client.client, 2)) == 2
    assert memory_of(served).held_bytes == 0


async def test_a_million_small_requests_that_wait_hold_one_read_of_them(served: InProcess) -> None:
    client = Sender(served, waiting_fetch("t", 60_000) + HELLO_FRAME * 40_000)
    client.send()
    assert not client.client.wire.reading
    assert client.client.connection.kept_bytes <= RECEIVE_BUFFER_BYTES
    assert memory_of(served).held_bytes == client.client.connection.kept_bytes


async def test_a_large_request_whose_answer_waits_counts_as_the_objects_that_it_became(served: InProcess) -> None:
    frame = waiting_fetch("t", 60_000)
    padded = padded_with_tags(frame, 100_000)
    client = served.client()
    client.send(padded)
    assert not client.wire.sent
    assert memory_of(served).held_bytes == OBJECT_BYTES * (len(padded) - 4)
    served.client().send(produce_frame("t"))
    assert len(await all_frames(client, 1)) == 1
    assert memory_of(served).held_bytes == 0


def padded_with_tags(frame: bytes, size: int) -> bytes:
    """Returns a request with an unknown tag of this size after its body."""
    tag = b"\x01\x7f" + bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14)) + bytes(size)
    body = frame[4:-1] + tag
    return struct.pack(">i", len(body)) + body


def test_records_are_counted_as_the_bytes_that_they_are() -> None:
    assert cost_bytes(memoryview(large_frame(MIB)[4:])) == len(large_frame(MIB)) - 4
    assert cost_bytes(memoryview(HELLO_FRAME[4:])) == OBJECT_BYTES * (len(HELLO_FRAME) - 4)


def look(served: InProcess, now_ms: int) -> None:
    served.server.listeners[0].close_stalled(now_ms, TIMEOUT_MS)


async def test_a_frame_that_does_not_come_further_closes_its_connection_with_one_line(
    served: InProcess, lines: list[Line]
) -> None:
    sender, idle = Sender(served, large_frame(MIB)), served.client()
    sender.send(1024)
    for now_ms in range(0, TIMEOUT_MS + 1, 250):
        assert not sender.client.wire.is_closing()
        look(served, now_ms)
    assert sender.client.wire.aborted
    assert not idle.wire.closing
    (line,) = lines
    event, fields = line.event, line.fields
    assert event == "connection closed"
    size = len(large_frame(MIB)) - 4
    assert str(fields["reason"]).startswith(f"a request of {size} bytes brought 1020, too few of them within 1000 ms")
    assert memory_of(served).held_bytes == 0


async def test_a_slow_frame_that_comes_further_is_waited_for(served: InProcess) -> None:
    sender = Sender(served, large_frame(MIB))
    for now_ms in range(0, 1 << 30, TIMEOUT_MS - 1):
        look(served, now_ms)
        if not sender.left:
            break
        sender.send(MIN_PROGRESS_BYTES)
    assert not sender.client.wire.closing
    assert len(await all_frames(sender.client, 1)) == 1


async def test_a_byte_now_and_then_is_no_progress(served: InProcess) -> None:
    sender = Sender(served, HELLO_FRAME)
    for now_ms in range(0, TIMEOUT_MS + 1, 250):
        sender.send(1)
        look(served, now_ms)
    assert sender.client.wire.aborted


async def test_a_new_frame_has_its_own_time(served: InProcess) -> None:
    client = served.client()
    for now_ms in range(0, 5 * TIMEOUT_MS, TIMEOUT_MS - 1):
        client.send(HELLO_FRAME[:9])
        look(served, now_ms)
        client.send(HELLO_FRAME[9:])
    assert not client.wire.closing


async def test_who_is_not_read_from_is_not_taken_for_slow(served: InProcess) -> None:
    """The connection waits for its own answer, and so does the rest of its next request."""
    client = Sender(served, waiting_fetch("t", 60_000) + large_frame(MIB))
    client.send()
    for now_ms in range(0, 5 * TIMEOUT_MS, 250):
        look(served, now_ms)
    assert not client.client.wire.closing


async def test_who_waits_for_room_too_long_is_closed_and_so_is_who_holds_what_others_need(
    served: InProcess, lines: list[Line]
) -> None:
    holders = [Sender(served, waiting_fetch("t", 60_000) + HELLO_FRAME * 40_000) for _ in range(5)]
    for holder in holders:
        holder.send()
    assert memory_of(served).is_short
    waiting = [Sender(served, large_frame(MIB)) for _ in range(2)]
    for sender in waiting:
        sender.send()
    assert [sender.client.wire.reading for sender in waiting].count(False) == 1 or not waiting[0].left
    for now_ms in range(0, TIMEOUT_MS + 1, 250):
        look(served, now_ms)
    assert any(holder.client.wire.aborted for holder in holders)
    assert any("while memory is short" in str(line.fields["reason"]) for line in lines)
    assert not memory_of(served).is_short
    assert not all(holder.client.wire.aborted for holder in holders)  # only as many as it took


async def test_a_peer_that_does_not_take_its_last_answer_is_cut_off(served: InProcess, lines: list[Line]) -> None:
    client = served.client()
    client.send(struct.pack(">i", -1))
    assert client.wire.closing
    client.wire.unread_bytes = 100
    for now_ms in range(0, TIMEOUT_MS + 1, 250):
        assert not client.wire.aborted
        look(served, now_ms)
    assert client.wire.aborted
    assert len([line for line in lines if "too" not in str(line.fields)]) >= 1


@pytest.mark.parametrize("cut", range(1, len(HELLO_FRAME)))
async def test_requests_cut_at_any_byte_are_answered_in_order(cut: int, served: InProcess) -> None:
    client = served.client()
    stream = b"".join(HELLO_FRAME[:8] + struct.pack(">i", number) + HELLO_FRAME[12:] for number in range(3))
    for begin in range(0, len(stream), cut):
        client.send(stream[begin : begin + cut])
    assert correlation_ids(client.wire.take()) == [0, 1, 2]
    assert memory_of(served).held_bytes == 0


async def test_what_is_not_admitted_holds_and_shares_nothing(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"max.connections.per.ip": "1"}) as served:
        served.client()
        third = served.client()
        assert third.wire.aborted
        third.connection.connection_lost(None)
        memory = memory_of(served)
        assert memory.shares["127.0.0.1"].connections == 1

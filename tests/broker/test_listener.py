"""Tests connections: order, back-pressure and limits; an error on one connection doesn't affect others."""

from __future__ import annotations

import asyncio
import gc
import struct
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.dispatch.dispatcher import MAX_OTHER_REQUEST_BYTES
from broker.dispatch.route import MAX_REQUEST_ITEMS
from broker.request.turns import REQUESTS
from programs.run.jobs import LEAST_INTERVAL_MS, Job, Keeper
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.primitives import uvarint
from protocol.records.building import build
from protocol.records.record import Record
from protocol.types import NO_UUID
from tests.broker.inprocess import LONG_S, Client, InProcess, decode_response, request_frame
from tests.clock import ManualClock
from tests.log_lines import Line
from tests.waiting import until

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def numbered(frame: bytes, correlation_id: int) -> bytes:
    return frame[:8] + struct.pack(">i", correlation_id) + frame[12:]


def correlation_ids(frames: list[bytes]) -> list[int]:
    return [struct.unpack_from(">i", frame)[0] for frame in frames]


async def all_frames(client: Client, count: int) -> list[bytes]:
    frames: list[bytes] = []
    async with asyncio.timeout(LONG_S):
        while len(frames) < count:
            frames += client.wire.take()
            await asyncio.sleep(0)
    return frames


def waiting_fetch(topic: str, max_wait_ms: int) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    return request_frame(FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics), 12)


def produce_frame(topic: str) -> bytes:
    records = bytes(build([Record(timestamp=1, value=b"v")]))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    return request_frame(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 12)


async def test_answers_come_in_the_order_of_the_requests_though_a_fetch_is_parked(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client, other = served.client(), served.client()
        hello = request_frame(HELLO, 3)
        client.send(numbered(hello, 1) + numbered(waiting_fetch("t", 60_000), 2) + numbered(hello, 3))
        await asyncio.sleep(0.01)
        assert correlation_ids(client.wire.take()) == [1]
        other.send(produce_frame("t"))
        frames = await all_frames(client, 2)
        assert correlation_ids(frames) == [2, 3]
        assert b"v" in frames[0]


async def test_a_client_whose_fetch_is_parked_is_read_from(tmp_path: Path) -> None:
    """Otherwise the broker wouldn't notice that the client disconnects."""
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client = served.client()
        client.send(waiting_fetch("t", 60_000))
        await asyncio.sleep(0)
        assert client.wire.reading
        client.send(request_frame(HELLO, 3))
        assert not client.wire.is_reading()


async def test_thousands_of_tiny_requests_are_answered_in_turns_and_in_order(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client, other = served.client(), served.client()
        count = 20 * REQUESTS
        hello = request_frame(ApiVersionsRequest(), 0)
        client.send(b"".join(numbered(hello, number) for number in range(count)))
        first = client.wire.take()
        assert 0 < len(first) <= REQUESTS  # fewer if the time of a turn is over first
        assert (await other.ask(HELLO, 3, ApiVersionsResponse)).error_code == 0
        frames = first + await all_frames(client, count - len(first))
        assert correlation_ids(frames) == list(range(count))
        assert client.wire.reading


async def test_thousands_of_requests_that_wait_are_answered_in_order(tmp_path: Path) -> None:
    """Each is awaited; the rest must not be copied again for each."""
    async with InProcess(tmp_path) as served:
        client = served.client()
        frame = request_frame(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 0)
        client.send(b"".join(numbered(frame, number) for number in range(3000)))
        assert correlation_ids(await all_frames(client, 3000)) == list(range(3000))


async def test_a_slow_reader_is_not_answered_until_it_has_read(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        client.connection.pause_writing()
        client.send(request_frame(HELLO, 3) * 3)
        assert not client.wire.take()
        assert not client.wire.is_reading()
        client.connection.resume_writing()
        assert len(await all_frames(client, 3)) == 3  # on a busy machine in several turns
        assert client.wire.reading


GARBAGE = {
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a negative size": struct.pack(">i", -1),
    "an API that does not exist": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "a version that does not exist": struct.pack(">ihhih", 10, 3, 77, 1, -1),
    "a frame without a header": struct.pack(">i", 0),
    "a torn body": struct.pack(">ihhihi", 14, 3, 1, 1, -1, 5),
    "a list too long": struct.pack(">ihhihi", 14, 3, 1, 1, -1, 1 << 30),
    "a client id cut short": struct.pack(">ihhih", 13, 18, 0, 1, 5) + b"abc",
    "a client id cut short, of a newer version": struct.pack(">ihhih", 13, 18, 99, 1, 5) + b"abc",
    "a client id that is not there": struct.pack(">ihhih", 10, 16, 2, 1, 0x7FFF),
    "four thousand million tags": struct.pack(">ihhih", 15, 18, 3, 1, -1) + b"\xff\xff\xff\xff\x0f",
    "a tag longer than its frame": struct.pack(">ihhih", 17, 18, 3, 1, -1) + b"\x01\x00\xff\xff\xff\xff\x0f",
}


@pytest.mark.parametrize("case", GARBAGE)
async def test_garbage_costs_its_own_connection_and_one_line(case: str, tmp_path: Path, lines: list[Line]) -> None:
    async with InProcess(tmp_path) as served:
        client, other = served.client(), served.client()
        hello = request_frame(HELLO, 3)
        client.send(hello + GARBAGE[case] + hello)
        await until(client.wire.is_closing)  # on a busy machine the turn of a connection may be over before
        assert len(client.wire.take()) == 1
        assert [(line.event, line.fields["peer"]) for line in lines] == [("connection closed", "127.0.0.1:1")]
        assert isinstance(lines[0].fields["offset"], int)
        assert (await other.ask(HELLO, 3, ApiVersionsResponse)).error_code == 0


async def test_a_text_that_is_none_is_read_as_java_reads_it(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        client.send(struct.pack(">ihhih", 19, 3, 1, 1, 2) + b"\xff\xed" + struct.pack(">ih", 1, 1) + b"\xff")
        (frame,) = await all_frames(client, 1)
        (topic,) = decode_response(frame[:0] + struct.pack(">i", 7) + frame[4:], 3, 1, MetadataResponse).topics
        assert topic.name == "\ufffd"
        assert topic.error_code == 17  # INVALID_TOPIC_EXCEPTION


async def test_the_line_names_api_version_and_place(tmp_path: Path, lines: list[Line]) -> None:
    async with InProcess(tmp_path) as served:
        served.client().send(GARBAGE["a list too long"])
        ((_, _, fields, _),) = lines
        assert fields["reason"] == "METADATA v1: topics of 1073741824 does not fit in the 0 bytes that are left"
        assert fields["offset"] == 14


async def test_requests_before_the_garbage_are_answered_first(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client = served.client()
        client.send(waiting_fetch("t", 20) + request_frame(HELLO, 3) + struct.pack(">i", -1))
        frames = await all_frames(client, 2)
        assert decode_response(frames[0], 1, 12, FetchResponse).responses[0].partitions[0].error_code == 0
        assert client.wire.is_closing()


async def test_a_frame_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"socket.request.max.bytes": "1000"}) as served:
        client = served.client()
        client.send(struct.pack(">i", 1000) + bytes(10))
        assert not client.wire.is_closing()
        client = served.client()
        client.send(struct.pack(">i", 1001))
        assert client.wire.is_closing()


async def test_only_records_may_be_large(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t", max_message_bytes=str(2 * MAX_OTHER_REQUEST_BYTES))
        client = served.client()
        records = bytes(build([Record(timestamp=1, value=bytes(MAX_OTHER_REQUEST_BYTES))]))
        data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
        answer = await client.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 12, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0
        size = MAX_OTHER_REQUEST_BYTES + 1
        client.send(struct.pack(">ihhihi", size, 3, 1, 1, -1, -1) + bytes(size - 14))
        assert client.wire.is_closing()


def crowd(items: int, *, tags: bool = False) -> bytes:
    """Returns a Produce with this number of empty topics, or of unknown tags."""
    topics = b"\1" + uvarint(items) + b"\7\0" * items if tags else uvarint(items + 1) + b"\1\1\0" * items + b"\0"
    body = struct.pack(">hhihb", 0, 12, 1, -1, 0) + b"\0" + struct.pack(">hi", 1, 1000) + topics
    return struct.pack(">i", len(body)) + body


async def test_a_request_has_no_more_items_than_a_constant(tmp_path: Path, lines: list[Line]) -> None:
    async with InProcess(tmp_path) as served:
        names = [MetadataRequestTopic(name="", topic_id=NO_UUID)] * MAX_REQUEST_ITEMS
        client = served.client()
        client.send(request_frame(MetadataRequest(topics=names, allow_auto_topic_creation=False), 9))
        assert len(await client.frames(1)) == 1
        assert not client.wire.is_closing()
        names.append(names[0])
        client.send(request_frame(MetadataRequest(topics=names, allow_auto_topic_creation=False), 9))
        assert await client.frames(1) == []
        assert client.wire.is_closing()
    ((_, _, fields, _),) = lines
    assert f"METADATA v9: more than {MAX_REQUEST_ITEMS} items" in str(fields["reason"])


@pytest.mark.parametrize("tags", [False, True])
async def test_a_produce_of_empty_topics_or_tags_is_not_taken_apart(
    tags: bool, tmp_path: Path, lines: list[Line]
) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        client.send(crowd(MAX_REQUEST_ITEMS, tags=tags))
        assert len(await client.frames(1)) == 1
        client.send(crowd(1_000_000, tags=tags))
        assert await client.frames(1) == []
        assert client.wire.is_closing()
    ((_, _, fields, _),) = lines
    assert f"PRODUCE v12: more than {MAX_REQUEST_ITEMS} items" in str(fields["reason"])


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        idle, talking, parked = served.client(), served.client(), served.client()
        listener = served.server.listeners[0]
        listener.close_idle()
        parked.send(waiting_fetch("t", 60_000))
        talking.send(request_frame(HELLO, 3))
        await asyncio.sleep(0)
        listener.close_idle()
        assert [client.wire.closing for client in (idle, talking, parked)] == [True, False, False]
        listener.close_idle()
        assert [client.wire.closing for client in (talking, parked)] == [True, False]


@pytest.mark.parametrize(("limit_ms", "is_closed"), [("-1", False), ("0", True), ("600000", True)])
async def test_a_negative_limit_keeps_idle_connections(limit_ms: str, is_closed: bool, tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"connections.max.idle.ms": limit_ms}) as served:
        idle = served.client()
        for _ in range(3):
            served.server.housekeeping.close_idle_connections()
        assert idle.wire.closing is is_closed


@pytest.mark.parametrize("interval_ms", [-1, 0])
async def test_a_job_without_an_interval_leaves_the_event_loop_to_others(interval_ms: int) -> None:
    clock = ManualClock()
    runs: list[object] = []
    keeper: Any = Keeper(SimpleNamespace(clock=clock, config=None), None, ())  # type: ignore[arg-type]
    keeper.begin((Job("often", lambda _: interval_ms, runs.append),))
    for passed_ms in range(1, 4):
        assert await clock.next_timer() == LEAST_INTERVAL_MS
        clock.advance(LEAST_INTERVAL_MS)
        await asyncio.sleep(0)
        assert len(runs) == passed_ms
    keeper.stop()


async def test_an_idle_client_that_does_not_read_is_cut_off(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        client.wire.unread_bytes = 1
        listener = served.server.listeners[0]
        listener.close_idle()
        listener.close_idle()
        assert client.wire.aborted


@pytest.mark.parametrize("version", [1, 13])
async def test_a_failing_handler_costs_its_own_request(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Line]
) -> None:
    """Version 13 of Metadata has a top-level error; in version 1 each topic has an error."""
    async with InProcess(tmp_path) as served:
        client, other = served.client(), served.client()
        await other.ask(MetadataRequest(topics=[]), version, MetadataResponse)
        route = served.server.listeners[0].answer.__self__.routes[3]  # type: ignore[attr-defined]
        monkeypatch.setattr(route, "handle", lambda call: 1 // 0)
        client.send(request_frame(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), version))
        answer = decode_response(client.wire.take()[0], 3, version, MetadataResponse)
        assert [topic.error_code for topic in answer.topics] == [-1]
        assert answer.error_code == (-1 if version == 13 else 0)
        assert not client.wire.closing
        assert isinstance(lines[0].fields["exc_info"], ZeroDivisionError)
        monkeypatch.undo()
        assert (await other.ask(MetadataRequest(topics=[]), version, MetadataResponse)).brokers


async def test_a_request_whose_client_is_gone_before_it_has_begun_is_given_up_quietly(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        client.send(request_frame(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000), 4))
        client.connection.connection_lost(None)
        gc.collect()  # what earlier tests have left
        with warnings.catch_warnings(record=True) as logged:
            warnings.simplefilter("always")
            for _ in range(3):  # turns of the loop
                await asyncio.sleep(0)
            gc.collect()
        assert not logged

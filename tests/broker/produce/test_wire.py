"""Tests that requests that are parsed in place have the same answers as requests that the codec decodes, byte for
byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.produce import message, wire
from broker.produce.request import FIRST_TOPIC_ID_VERSION, ParsedProduce
from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.primitives import uvarint
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from tests.broker.inprocess import InProcess, parse_by, parsed_in_place, request_frame
from tests.interop.conformance.bytes_of import header_changed

NOW_MS = 1_700_000_000_000


def batch(count: int = 1, **fields: Any) -> bytes:
    records = [Record(offset=i, timestamp=NOW_MS + i, key=None, value=b"v" * 50, headers=[]) for i in range(count)]
    return bytes(build(records, **fields))


def request(topic_id: bytes, *partitions: tuple[int, bytes | None], acks: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="t", topic_id=topic_id, partition_data=data)],
    )


BODY = 4 + 10 + len(b"test") + 1
"""The position of a request's body, after its size and its header."""

VERSIONS = (wire.FIRST_VERSION, FIRST_TOPIC_ID_VERSION)
"""A version that names topics, and a version with topic ids; the other versions have the same layouts."""

BAD_CRC = batch()[:-1] + b"!"

LONG = bytes(build([Record(timestamp=NOW_MS, value=bytes(20_000_000))], compression=Compression.GZIP))
LIE = header_changed(LONG, records_count=2, last_offset_delta=1)

CASES: dict[str, list[tuple[int, Any]]] = {
    "one record": [(0, batch())],
    "several partitions": [(0, batch(3)), (2, batch(200)), (1, batch())],
    "one of them refused": [(0, batch()), (1, BAD_CRC), (2, batch())],
    "idempotent": [(0, batch(2, producer_id=9, producer_epoch=0, base_sequence=0))],
    "out of order": [(0, batch(2, producer_id=9, producer_epoch=0, base_sequence=0)), (0, BAD_CRC)],
    "unknown partition": [(0, batch()), (9, batch())],
    "no records": [(0, None)],
    "too few bytes": [(0, b"\0" * 30)],
    "larger than a name's length byte": [(0, batch(400))],
    "no partitions": [],
    "records that take long": [(0, LONG)],
    "some that take long": [(1, batch()), (0, LONG), (2, batch(3)), (0, batch(2)), (1, LONG)],
    "some that take long, and lie": [(1, batch()), (0, LIE), (2, BAD_CRC), (1, LONG)],
}


@pytest.mark.parametrize("case", CASES)
async def test_both_parsers_lead_to_the_same_answer(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast_way = [await answer(tmp_path / "fast", version, case) for version in VERSIONS]
    parse_by(monkeypatch, ApiKey.PRODUCE, None)
    assert fast_way == [await answer(tmp_path / "general", version, case) for version in VERSIONS]


async def answer(directory: Path, version: int, case: str) -> bytes:
    async with InProcess(directory / str(version)) as broker:
        topic_id = await broker.create_topic("t", partitions=3)
        client = broker.client()
        client.send(request_frame(request(topic_id, *CASES[case]), version))
        return b"".join(await client.frames(1)).replace(topic_id, bytes(16))


async def test_the_usual_request_is_parsed_in_place(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        frame = memoryview(bytearray(request_frame(request(topic_id, (0, batch())), 13)))
        assert parsed_in_place(broker, ApiKey.PRODUCE, 13, frame, BODY) is not None


@pytest.mark.parametrize(
    "parsed",
    [
        request(bytes(16), (0, batch())),
        request(bytes(16), (0, batch()), acks=0),
        ProduceRequest(transactional_id="x", acks=-1, timeout_ms=0, topic_data=[]),
        ProduceRequest(transactional_id="", acks=7, timeout_ms=-1, topic_data=[]),
    ],
    ids=["unknown topic", "acks=0", "transactional id", "unknown acks"],
)
@pytest.mark.parametrize("version", VERSIONS)
async def test_both_parsers_read_the_same(parsed: ProduceRequest, version: int, tmp_path: Path) -> None:
    parsed.topic_data = [*parsed.topic_data, TopicProduceData(name="u", partition_data=one_partition(transactional()))]
    async with InProcess(tmp_path) as broker:
        frame = memoryview(bytearray(request_frame(parsed, version)))
        in_place = parsed_in_place(broker, ApiKey.PRODUCE, version, frame, BODY)
        assert isinstance(in_place, ParsedProduce)
        decoded, _ = decode(ProduceRequest, version, frame, BODY)
        assert content(in_place) == content(message.parsed(decoded, version))


def one_partition(records: bytes) -> list[PartitionProduceData]:
    return [PartitionProduceData(index=3, records=records)]


def transactional() -> bytes:
    return batch(2, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)


def content(request: ParsedProduce) -> object:
    head = (request.transactional_id, request.acks, request.timeout_ms, request.is_transactional)
    return *head, [
        (p.topic.key, p.topic.uses_id, p.index, bytes(p.records), p.is_transactional, p.rejection, p.is_corrupt)
        for p in request.partitions
    ]


@pytest.mark.parametrize(
    "unusual",
    [
        request(bytes(16), (0, None)),
        request(bytes(16), (0, batch() + batch())),
        request(bytes(16), (0, batch()[:70])),
        request(bytes(16)),
        request(bytes(16), *((index, batch()) for index in range(127))),
        ProduceRequest(transactional_id="x" * 127, acks=-1, timeout_ms=0, topic_data=[]),
    ],
    ids=["no records", "two batches", "half a batch", "no partitions", "many partitions", "a long transactional id"],
)
async def test_the_unusual_is_left_to_the_codec(unusual: ProduceRequest, tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        frame = memoryview(bytearray(request_frame(unusual, 13)))
        assert parsed_in_place(broker, ApiKey.PRODUCE, 13, frame, BODY) is None


@pytest.mark.parametrize(("size_bytes", "is_usual"), [(2, True), (5, True), (6, False)])
async def test_the_size_of_records_takes_five_bytes_at_most(size_bytes: int, is_usual: bool, tmp_path: Path) -> None:
    records = batch(4)
    whole = request_frame(request(bytes(16), (0, records)), 13)
    size = uvarint(len(records) + 1)
    frame = memoryview(bytearray(whole.replace(size + records, longer(size, size_bytes) + records)))
    async with InProcess(tmp_path) as broker:
        in_place = parsed_in_place(broker, ApiKey.PRODUCE, 13, frame, BODY)
    read = bytes(in_place.partitions[0].records) if isinstance(in_place, ParsedProduce) else None
    assert read == (records if is_usual else None)


def longer(size: bytes, size_bytes: int) -> bytes:
    """Returns the same varint in more bytes than it needs."""
    added = size_bytes - len(size)
    return bytes([*size[:-1], size[-1] | 0x80, *[0x80] * (added - 1), 0]) if added else size


async def test_a_torn_request_appends_nothing(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t", partitions=2)
        whole = request_frame(request(topic_id, (0, batch()), (1, batch())), 13)
        for cut in range(30, len(whole) - 1):
            frame = memoryview(bytearray(whole[:cut]))
            assert parsed_in_place(broker, ApiKey.PRODUCE, 13, frame, BODY) is None
        assert all(partition.log.log_end_offset == 0 for partition in broker.server.broker.replicas)


async def test_what_was_appended_can_be_read(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        for expected in (0, 3):
            answer = await client.ask(request(topic_id, (0, batch(3))), 13, ProduceResponse)
            assert answer.responses[0].partition_responses[0].base_offset == expected

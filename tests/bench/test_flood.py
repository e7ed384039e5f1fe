"""Tests the requests of the flood clients: our codec can read them, so they are what real clients send."""

from __future__ import annotations

from bench.clients import flood
from protocol.codec import decode
from protocol.messages.fetch import FetchRequest
from protocol.messages.produce import ProduceRequest
from protocol.records.batch import read_header
from protocol.records.record import read_records

FRAME_AND_HEADER = 4 + 8 + 2 + 5 + 1


def test_a_batch_is_one_as_a_log_has_it() -> None:
    batch = flood.batch(7)
    header = read_header(memoryview(batch))
    assert header.size_bytes == len(batch)
    records = list(read_records(memoryview(batch), 0, header))
    assert [record.offset for record in records] == list(range(flood.RECORDS))
    assert {len(record.value or b"") for record in records} == {flood.VALUE_BYTES}


def test_produce_9() -> None:
    frame = flood.produce_request("t", 3, b"records")
    request, end = decode(ProduceRequest, 9, memoryview(frame), FRAME_AND_HEADER)
    assert end == len(frame)
    assert request.acks == 1
    assert request.topic_data[0].name == "t"
    assert request.topic_data[0].partition_data[0].index == 3
    assert bytes(request.topic_data[0].partition_data[0].records or b"") == b"records"


def test_fetch_12() -> None:
    frame = flood.fetch_request("t", 3, 99)
    request, end = decode(FetchRequest, 12, memoryview(frame), FRAME_AND_HEADER)
    assert end == len(frame)
    assert (request.replica_id, request.min_bytes, request.session_epoch) == (-1, 1, -1)
    partition = request.topics[0].partitions[0]
    assert (partition.partition, partition.fetch_offset, partition.partition_max_bytes) == (3, 99, flood.FETCH_BYTES)

"""Tests Produce: the appended records, and the errors of rejected ones."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData
from protocol.records.compression import Compression
from protocol.records.legacy import down_convert
from tests.broker.asking import MADE_MS, batch, fetch, produce, produce_request
from tests.broker.inprocess import Client, InProcess, request_frame


async def test_records_get_the_next_offsets(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    assert (await produce(client, "t", batch(b"a", b"b"))).base_offset == 0
    assert (await produce(client, "t", batch(b"c"))).base_offset == 2


async def test_each_partition_is_answered_on_its_own(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", 2)
    damaged = batch(b"a")[:-1] + b"\xff"
    answer = await client.ask(
        produce_request("t", (0, damaged), (1, batch(b"a")), (9, batch(b"a"))), 12, ProduceResponse
    )
    assert [(partition.index, partition.error_code) for partition in answer.responses[0].partition_responses] == [
        (0, ErrorCode.CORRUPT_MESSAGE),
        (1, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


async def test_a_topic_id_leads_to_its_topic(broker: InProcess, client: Client) -> None:
    topic_id = await broker.create_topic("t")
    request = produce_request("", (0, batch(b"a")))
    for requested_id, code in ((topic_id, ErrorCode.NONE), (bytes(15) + b"\7", ErrorCode.UNKNOWN_TOPIC_ID)):
        request.topic_data[0].topic_id = requested_id
        answer = await client.ask(request, 13, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == code


@pytest.mark.parametrize("acks", [2, -2])
async def test_other_acks_are_refused(acks: int, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    answer = await client.ask(produce_request("t", (0, batch(b"a")), acks=acks), 12, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert (await fetch(client, "t")).high_watermark == 0


async def test_a_producer_that_wants_no_answer_gets_none(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    client.send(request_frame(produce_request("t", (0, batch(b"a")), acks=0), 12))
    assert (await fetch(client, "t")).high_watermark == 1


async def test_it_is_told_of_an_error_by_the_end_of_its_connection(broker: InProcess, client: Client) -> None:
    client.send(request_frame(produce_request("nowhere", (0, batch(b"a")), acks=0), 12))
    assert client.wire.is_closing()


@pytest.mark.parametrize(
    "records", [None, b"", batch(b"a")[:50], batch(b"a") + batch(b"b")], ids=["null", "0", "cut", "2"]
)
async def test_a_partition_gets_one_batch(records: bytes | None, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    for version in (3, 12):
        assert (await produce(client, "t", records, version=version)).error_code == ErrorCode.INVALID_RECORD


async def test_zstd_needs_version_7(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    records = batch(b"a", compression=Compression.ZSTD)
    assert (await produce(client, "t", records, version=6)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (await produce(client, "t", records, version=7)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("magic", [0, 1])
async def test_old_clients_send_messages_of_old_formats(magic: int, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    messages = bytes(down_convert(memoryview(batch(b"a", b"b")), magic, first_offset=0))
    assert (await produce(client, "t", messages, version=magic + 1)).base_offset == 0
    assert (await fetch(client, "t")).high_watermark == 2
    assert (await produce(client, "t", messages, version=3)).error_code == ErrorCode.INVALID_RECORD


async def test_a_batch_too_large_is_refused(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", max_message_bytes="100")
    assert (await produce(client, "t", batch(bytes(50)))).error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_records_at_fault_are_named(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", cleanup_policy="compact")
    answer = await produce(client, "t", batch(b"a", b"b"))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert answer.record_errors[0].batch_index_error_message == (
        "Compacted topic cannot accept message without key in topic partition t-0"
    )
    assert (await produce(client, "t", batch(b"a", key=b"k"))).error_code == ErrorCode.NONE


async def test_the_broker_s_time_is_told_where_it_stamps(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", message_timestamp_type="LogAppendTime")
    await broker.create_topic("u")
    assert (await produce(client, "t", batch(b"a"))).log_append_time_ms > MADE_MS
    assert (await produce(client, "u", batch(b"a"))).log_append_time_ms == -1


async def test_a_batch_sent_again_is_answered_with_its_first_offset(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    records = batch(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0)
    assert (await produce(client, "t", records)).base_offset == 0
    assert (await produce(client, "t", records)).base_offset == 0
    assert (await fetch(client, "t")).high_watermark == 2


async def test_gaps_and_old_epochs_are_refused(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a", producer_id=1, producer_epoch=1, base_sequence=0))
    gap = await produce(client, "t", batch(b"a", producer_id=1, producer_epoch=1, base_sequence=2))
    old = await produce(client, "t", batch(b"a", producer_id=1, producer_epoch=0, base_sequence=1))
    assert (gap.error_code, old.error_code) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    )
    assert gap.log_start_offset == 0


async def test_no_more_replicas_must_be_in_sync_than_there_are(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", min_insync_replicas="2")
    assert (await produce(client, "t", batch(b"a"))).error_code == ErrorCode.NONE


async def test_topics_without_partitions_are_left_out(broker: InProcess, client: Client) -> None:
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[])])
    assert (await client.ask(request, 12, ProduceResponse)).responses == []

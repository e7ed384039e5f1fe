"""Tests Fetch: the records read, the time of the answer, and the partitions that a session leaves out."""

from __future__ import annotations

import asyncio

import pytest

from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse, ForgottenTopic
from protocol.records.batch import iter_batches
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.legacy import OVERFLOW_MESSAGE
from protocol.records.message_set import read_messages
from protocol.records.record import MAX_INFLATED_SIZE, Record
from tests.broker.asking import batch, fetch, fetch_request, produce
from tests.broker.following import led_alone
from tests.broker.inprocess import Client, InProcess, request_frame


async def test_whole_batches_from_the_one_with_the_offset_on(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    for values in ((b"a", b"b"), (b"c", b"d"), (b"e",)):
        await produce(client, "t", batch(*values))
    data = await fetch(client, "t", 3)
    assert data.records is not None
    assert [header.base_offset for _, header in iter_batches(data.records)] == [2, 4]
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (5, 5, 0)


async def test_the_first_batch_comes_whole_whatever_its_size(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", 2)
    for partition in (0, 1):
        await produce(client, "t", batch(bytes(1000)), partition=partition)
    answer = await client.ask(fetch_request("t", partitions=(0, 1), max_bytes=10), 12, FetchResponse)
    first, second = answer.responses[0].partitions
    assert first.records is not None
    assert len(first.records) > 1000
    assert not second.records


async def test_the_end_gives_nothing_and_beyond_it_is_an_error(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a"))
    end, beyond = await fetch(client, "t", 1), await fetch(client, "t", 2)
    assert (end.error_code, end.records) == (ErrorCode.NONE, b"")
    assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
async def test_a_replica_that_is_not_assigned_may_know_more_if_it_names_the_epoch(
    epoch: int, error: ErrorCode, broker: InProcess, client: Client
) -> None:
    await broker.create_topic("t")
    request = fetch_request("t", current_leader_epoch=epoch)
    request.replica_id = 7
    answer = await client.ask(request, 12, FetchResponse)
    assert answer.responses[0].partitions[0].error_code == error


async def test_a_fetch_waits_for_an_append(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    client.send(request_frame(fetch_request("t", max_wait_ms=60_000), 12))
    await asyncio.sleep(0.01)
    assert not client.wire.sent
    await produce(broker.client(), "t", batch(b"a"))
    assert len(await client.frames(1)) == 1


async def test_a_fetch_waits_for_as_many_bytes_as_it_wants(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    client.send(request_frame(fetch_request("t", max_wait_ms=60_000, min_bytes=150), 12))
    await produce(broker.client(), "t", batch(bytes(30)))
    await asyncio.sleep(0.01)
    assert not client.wire.sent
    await produce(broker.client(), "t", batch(bytes(30)))
    assert len(await client.frames(1)) == 1


async def test_a_fetch_waits_no_longer_than_it_may(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    client.send(request_frame(fetch_request("t", max_wait_ms=10), 12))
    assert len(await client.frames(1)) == 1


async def test_an_error_is_answered_at_once(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    client.send(request_frame(fetch_request("t", 5, max_wait_ms=60_000), 12))
    assert len(await client.frames(1)) == 1


async def test_partitions_that_are_not_here_do_not_hurry_the_others(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    client.send(request_frame(fetch_request("t", partitions=(7, 0), max_wait_ms=60_000), 12))
    await asyncio.sleep(0.01)
    assert not client.wire.sent
    await produce(broker.client(), "t", batch(b"a"))
    assert len(await client.frames(1)) == 1


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
async def test_old_clients_get_messages_of_old_formats(
    version: int, magic: int, broker: InProcess, client: Client
) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a", b"b"))
    data = await fetch(client, "t", 1, version=version)
    assert data.records is not None
    assert data.records[16] == magic
    assert [record.value for record in read_messages(data.records)] == [b"b"]


@pytest.mark.parametrize("version", [0, 3])
async def test_old_clients_wait_for_records(version: int, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    client.send(request_frame(fetch_request("t", max_wait_ms=60_000), version))
    await asyncio.sleep(0)
    assert not client.wire.sent
    await produce(broker.client(), "t", batch(b"a"))
    assert len(await client.frames(1)) == 1
    client.send(request_frame(fetch_request("t", 1, max_wait_ms=10), version))
    assert len(await client.frames(1)) == 1
    partition = broker.server.broker.replicas.partition("t", 0)
    client.send(request_frame(fetch_request("t", 1, max_wait_ms=60_000), version))
    await asyncio.sleep(0)
    assert len(partition.waiters) == 1
    client.connection.connection_lost(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not partition.waiters


async def test_old_clients_are_told_of_a_batch_that_is_too_large_for_them(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", partitions=2, odradek_records_check="false")
    large = build([Record(value=bytes(MAX_INFLATED_SIZE))], compression=Compression.GZIP)
    small = build([Record(value=bytes(MAX_INFLATED_SIZE // 2))], compression=Compression.GZIP)
    await produce(client, "t", bytes(large), partition=0)
    assert (await fetch(client, "t", version=3)).records == OVERFLOW_MESSAGE
    for _ in range(3):
        await produce(client, "t", bytes(small), partition=1)
    data = await fetch(client, "t", partition=1, version=3)
    assert [record.offset for record in read_messages(data.records or b"")] == [0]


@pytest.mark.parametrize("version", [0, 3])
async def test_old_clients_are_told_that_they_cannot_read_zstd(version: int, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a", compression=Compression.ZSTD))
    assert (await fetch(client, "t", version=version)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


async def test_the_client_s_leader_epoch_is_checked(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    for epoch, code in ((-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        answer = await client.ask(fetch_request("t", current_leader_epoch=epoch), 12, FetchResponse)
        assert answer.responses[0].partitions[0].error_code == code


@pytest.mark.parametrize("version", [15, 16])
async def test_a_client_that_is_behind_is_told_the_leader(version: int, broker: InProcess, client: Client) -> None:
    topic_id = await broker.create_topic("t")
    broker.server.broker.replicas.partition("t", 0).become(led_alone(1, 3, 0), 0)
    request = fetch_request("", topic_id=topic_id, current_leader_epoch=2, max_wait_ms=60_000)
    answer = await client.ask(request, version, FetchResponse)
    (data,) = answer.responses[0].partitions
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    current_leader = (data.current_leader.leader_id, data.current_leader.leader_epoch)
    assert current_leader == ((1, 3) if version == 16 else (-1, -1))
    assert [node.node_id for node in answer.node_endpoints] == ([1] if version == 16 else [])


async def test_a_log_that_went_another_way_is_told_where(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a"))
    answer = await client.ask(fetch_request("t", 5, last_fetched_epoch=0), 12, FetchResponse)
    diverging = answer.responses[0].partitions[0].diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 1)


async def test_a_session_tells_only_what_is_new(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", 2)
    first = await client.ask(fetch_request("t", partitions=(0, 1), session=(0, 0)), 12, FetchResponse)
    assert first.session_id
    assert len(first.responses[0].partitions) == 2
    await produce(client, "t", batch(b"a"), partition=1)
    second = await client.ask(fetch_request("t", partitions=(), session=(first.session_id, 1)), 12, FetchResponse)
    assert [data.partition_index for data in second.responses[0].partitions] == [1]


async def test_the_next_answer_of_a_session_has_nothing_of_an_earlier_error(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a"))
    first = await client.ask(fetch_request("t", 9, session=(0, 0)), 12, FetchResponse)
    assert first.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    second = await client.ask(fetch_request("t", session=(first.session_id, 1)), 12, FetchResponse)
    (data,) = second.responses[0].partitions
    assert data == await fetch(client, "t")
    assert data.records


async def test_a_session_of_another_epoch_is_refused(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    first = await client.ask(fetch_request("t", session=(0, 0)), 12, FetchResponse)
    for session, code in (
        ((first.session_id, 5), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ((first.session_id ^ 1, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ):
        answer = await client.ask(fetch_request("t", partitions=(), session=session), 12, FetchResponse)
        assert (answer.error_code, answer.session_id, answer.responses) == (code, 0, [])


async def test_a_session_without_partitions_left_is_over(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    first = await client.ask(fetch_request("t", session=(0, 0)), 12, FetchResponse)
    request = fetch_request("t", partitions=(), session=(first.session_id, 1))
    request.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0])]
    assert (await client.ask(request, 12, FetchResponse)).session_id == 0
    assert not broker.server.broker.fetches.sessions.sessions


async def test_a_topic_id_is_the_topic_s_of_now(broker: InProcess, client: Client) -> None:
    topic_id = await broker.create_topic("t")
    for requested_id, code in ((topic_id, ErrorCode.NONE), (bytes(15) + b"\7", ErrorCode.UNKNOWN_TOPIC_ID)):
        answer = await client.ask(fetch_request("", topic_id=requested_id), 13, FetchResponse)
        assert answer.responses[0].partitions[0].error_code == code


async def test_a_partition_named_twice_is_answered_once(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    answer = await client.ask(fetch_request("t", partitions=(0, 0)), 12, FetchResponse)
    assert len(answer.responses[0].partitions) == 1

"""Tests that a transactional producer's requests are pipelined, like any other producer's."""

from __future__ import annotations

from pathlib import Path

from broker.dispatch.route import MAX_ITEMS_ON_LOOP
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.records.building import build
from protocol.records.record import Record
from tests.broker.following import acknowledge, follow
from tests.broker.inprocess import InProcess, decode_response, request_frame
from tests.broker.test_listener import all_frames
from tests.broker.transacting import ID, TransactionalClient, broker_on
from tests.waiting import until

VERSION = 13
TRANSACTION = 1
"""The key type of transactional ids in FindCoordinator."""


async def test_requests_of_a_transaction_wait_for_their_commit_together(tmp_path: Path) -> None:
    async with broker_on(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        transactional = TransactionalClient(client)
        await transactional.find(ID, TRANSACTION)
        code, producer = await transactional.init()
        assert code is ErrorCode.NONE
        (partition,) = (partition for partition in broker.server.broker.replicas if partition.name.topic == "t")
        follow(partition)
        for sequence in range(3):
            records = build(
                [Record(value=b"v")],
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=sequence,
                transactional=True,
            )
            topic = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=records)])
            request = ProduceRequest(transactional_id=ID, acks=-1, timeout_ms=60_000, topic_data=[topic])
            client.send(request_frame(request, VERSION))
        await broker.settled()
        assert partition.log_end_offset == 3, "the coordinator is asked for the first only"
        assert not client.wire.sent
        acknowledge(partition, 3)
        answers = [
            decode_response(frame, ApiKey.PRODUCE, VERSION, ProduceResponse) for frame in await all_frames(client, 3)
        ]
        parts = [answer.responses[0].partition_responses[0] for answer in answers]
        assert [(part.error_code, part.base_offset) for part in parts] == [(0, 0), (0, 1), (0, 2)]


MANY = MAX_ITEMS_ON_LOOP + 1


def produce(topic_id: bytes, entries: int, acks: int) -> bytes:
    """Returns the frame of a request whose entries all have a record for the same partition."""
    data = [PartitionProduceData(index=0, records=build([Record(value=b"v")])) for _ in range(entries)]
    topics = [TopicProduceData(topic_id=topic_id, name="t", partition_data=data)]
    return request_frame(ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=topics), VERSION)


async def test_a_request_that_a_thread_decodes_stays_before_the_next(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        client.send(produce(topic_id, MANY, 1) + produce(topic_id, 1, 1))
        answers = [
            decode_response(frame, ApiKey.PRODUCE, VERSION, ProduceResponse) for frame in await all_frames(client, 2)
        ]
        offsets = [[part.base_offset for part in answer.responses[0].partition_responses] for answer in answers]
        assert offsets == [[*range(MANY)], [MANY]]


async def test_a_request_that_a_thread_decodes_is_appended_though_its_client_goes(tmp_path: Path) -> None:
    """With acks=0, the producer may disconnect as soon as it has sent the request."""
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        client.send(produce(topic_id, MANY, 0))
        client.connection.connection_lost(None)
        (partition,) = broker.server.broker.replicas
        assert partition.log_end_offset == 0
        await until(lambda: partition.log_end_offset >= MANY)

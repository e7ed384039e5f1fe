"""A transactional producer's requests are appended one behind the other, as any producer's are."""

from __future__ import annotations

from pathlib import Path

from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.records.building import build
from protocol.records.record import Record
from tests.broker.following import acknowledge, follow
from tests.broker.inprocess import decode_response, request_frame
from tests.broker.test_listener import all_frames
from tests.broker.transacting import ID, TransactionalClient, broker_on

VERSION = 13
TRANSACTION = 1
"""The type of a key of FindCoordinator."""


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

"""Short helpers for requests of the data plane to a broker in the test's process."""

from __future__ import annotations

from typing import Any

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.building import build
from protocol.records.record import Record
from tests.broker.inprocess import Client

PRODUCE_VERSION = FETCH_VERSION = 12
"""The newest version that names topics."""

LIST_OFFSETS_VERSION = 9
MADE_MS = 1_700_000_000_000


def batch(*values: bytes | None, key: bytes | None = None, timestamp: int = MADE_MS, **fields: Any) -> bytes:
    """Returns a batch with these values; other fields of its header are as for `build`."""
    records = [Record(timestamp=timestamp + index, key=key, value=value) for index, value in enumerate(values)]
    return bytes(build(records, **fields))


def produce_request(topic: str, *partitions: tuple[int, bytes | None], acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


async def produce(
    client: Client, topic: str, records: bytes | None, *, partition: int = 0, version: int = PRODUCE_VERSION
) -> PartitionProduceResponse:
    answer = await client.ask(produce_request(topic, (partition, records)), version, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def fetch_request(
    topic: str,
    offset: int = 0,
    *,
    partitions: tuple[int, ...] = (0,),
    topic_id: bytes = bytes(16),
    max_bytes: int = 1 << 20,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchRequest:
    requested = [
        FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
            current_leader_epoch=current_leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
        )
        for index in partitions
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=requested)] if requested else [],
    )


async def fetch(
    client: Client, topic: str, offset: int = 0, *, partition: int = 0, version: int = FETCH_VERSION
) -> PartitionData:
    answer = await client.ask(fetch_request(topic, offset, partitions=(partition,)), version, FetchResponse)
    return answer.responses[0].partitions[0]


async def list_offset(
    client: Client,
    topic: str,
    timestamp: int,
    *,
    version: int = LIST_OFFSETS_VERSION,
    replica_id: int = -1,
    **fields: int,
) -> ListOffsetsPartitionResponse:
    requested = ListOffsetsPartition(partition_index=0, timestamp=timestamp, **fields)
    request = ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(name=topic, partitions=[requested])])
    answer = await client.ask(request, version, ListOffsetsResponse)
    return answer.topics[0].partitions[0]

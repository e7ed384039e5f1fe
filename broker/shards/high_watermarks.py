"""High watermarks from the leaders of partitions.

Source: NetworkPartitionMetadataClient (KIP-1226).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.shards.anywhere import Anywhere, Packing
from broker.shards.environment import Environment
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.types import TopicPartition

CONSUMER: Final = -1
LATEST: Final = -1


async def high_watermark(environment: Environment, name: TopicPartition) -> int:
    """Returns a partition's high watermark from its leader, on any broker. Raises KafkaError."""
    leader_id = environment.leader_elsewhere(name)
    if leader_id is None:
        return environment.replicas.leader(*name).high_watermark
    return await environment.anywhere().submit(leader_id, HIGH_WATERMARKS, name)


async def high_watermarks(
    anywhere: Anywhere, leader_id: int, names: Sequence[TopicPartition]
) -> Sequence[int | KafkaError]:
    """Returns the high watermarks, or the partitions' errors, from one request to the leader. Raises PeerError,
    ProtocolError."""
    response = await anywhere.send(leader_id, HIGH_WATERMARKS.purpose, packed(names), ListOffsetsResponse)
    return unpacked(names, response)


def packed(names: Sequence[TopicPartition]) -> ListOffsetsRequest:
    """Returns the request for high watermarks."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in names:
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=partition, timestamp=LATEST))
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[ListOffsetsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


def unpacked(names: Sequence[TopicPartition], response: ListOffsetsResponse) -> list[int | KafkaError]:
    """Returns the offsets of a response, or the partitions' errors; UNKNOWN_SERVER_ERROR for a partition that is
    missing in it."""
    answers = {
        TopicPartition(topic.name, partition.partition_index): (
            KafkaError(error_code(partition.error_code)) if partition.error_code else partition.offset
        )
        for topic in response.topics
        for partition in topic.partitions
    }
    return [answers.get(name, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)) for name in names]


HIGH_WATERMARKS: Final = Packing("share-group-offsets", packed, ListOffsetsResponse, unpacked, lambda name: name)

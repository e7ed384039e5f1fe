"""Requests to the leaders of other partitions: for high watermarks, and to write dead letters.

Source: NetworkPartitionMetadataClient (KIP-1226), ShareGroupDLQStateManager (KIP-1191).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.coordinators.batcher import Batcher, as_kafka_error
from broker.coordinators.environment import Environment
from broker.coordinators.neighbours import Neighbours
from client.errors import PeerError
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.types import TopicPartition, Uuid

CONSUMER: Final = -1
LATEST: Final = -1
ALL: Final = -1


class OtherLeaders:
    """Sends the requests. Dead letters have their own connections, because a batch may take long to commit."""

    def __init__(self, environment: Environment) -> None:
        self._config = environment.live_config
        self._offsets: Neighbours = environment.neighbours("share-group-offsets")
        self._letters: Neighbours = environment.neighbours("dead-letters")
        self._batcher: Batcher[int, TopicPartition, int | KafkaError] = Batcher(
            "ends of partitions", self.high_watermarks
        )

    async def high_watermark(self, leader_id: int, name: TopicPartition) -> int:
        """Returns the high watermark from the leader. Raises KafkaError."""
        offset = await self._batcher.submit(leader_id, name, name)
        if isinstance(offset, KafkaError):
            raise offset
        return offset

    async def produce(self, leader_id: int, name: TopicPartition, topic_id: Uuid, batch: bytearray) -> None:
        """Has the leader append a batch, and returns once it is committed. Raises KafkaError."""
        data = TopicProduceData(
            name=name.topic,
            topic_id=topic_id,
            partition_data=[PartitionProduceData(index=name.partition, records=batch)],
        )
        request = ProduceRequest(acks=ALL, timeout_ms=self._config.effective.request_timeout_ms, topic_data=[data])
        try:
            response = await self._letters.send(leader_id, request, ProduceResponse)
        except (PeerError, ProtocolError) as error:
            raise as_kafka_error(error) from error
        for topic in response.responses:
            for partition in topic.partition_responses:
                if partition.error_code:
                    raise KafkaError(error_code(partition.error_code), partition.error_message or None)

    def stop(self) -> None:
        """Sends no more requests."""
        self._batcher.stop()
        self._offsets.stop()
        self._letters.stop()

    async def high_watermarks(self, leader_id: int, names: Sequence[TopicPartition]) -> list[int | KafkaError]:
        """Returns the high watermarks, or the partitions' errors, from one request to the leader. Raises PeerError,
        ProtocolError."""
        response = await self._offsets.send(leader_id, ends_request(names), ListOffsetsResponse)
        ends = by_name(response)
        return [ends.get(name, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)) for name in names]


def ends_request(names: Sequence[TopicPartition]) -> ListOffsetsRequest:
    """Returns the request for high watermarks."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in names:
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=partition, timestamp=LATEST))
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[ListOffsetsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


def by_name(response: ListOffsetsResponse) -> dict[TopicPartition, int | KafkaError]:
    """Returns the offsets of a response, or the partitions' errors."""
    return {
        TopicPartition(topic.name, partition.partition_index): (
            KafkaError(error_code(partition.error_code)) if partition.error_code else partition.offset
        )
        for topic in response.topics
        for partition in topic.partitions
    }

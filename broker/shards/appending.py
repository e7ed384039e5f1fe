"""Appends a batch that the broker itself writes to a topic of its own, whichever broker leads the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.replica.topics import OwnTopic
from broker.replica.waits import committed
from broker.shards.environment import Environment
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.lazy import lazy
from protocol.types import TopicPartition, Uuid

if TYPE_CHECKING:
    from broker.shards import anywhere
    from client import errors
    from protocol.messages import produce
else:  # with the first leader elsewhere
    anywhere = lazy("broker.shards.anywhere")
    errors = lazy("client.errors")
    produce = lazy("protocol.messages.produce")

PURPOSE: Final = "dead-letters"
"""The purpose of these connections, which are separate because a batch may take long to commit."""

ALL: Final = -1


async def partition_of(environment: Environment, topic: OwnTopic, number: int) -> TopicPartition:
    """Returns the topic's partition for a number, which changes only with the number of partitions; creates the topic
    if it doesn't exist. Raises KafkaError."""
    if environment.image.topic(topic.name) is None:
        await environment.topics.ensure(topic)
    await environment.topics.made((topic.name,))
    made = environment.image.topic(topic.name)
    if made is None or not made.partitions:  # the created topic is not in this broker's metadata yet
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return TopicPartition(topic.name, number % len(made.partitions))


async def append_at_leader(environment: Environment, target: TopicPartition, encoded: bytearray, now_ms: int) -> None:
    """Appends a batch, and returns once it is committed. Raises KafkaError."""
    leader_id = environment.leader_elsewhere(target)
    topic = environment.image.topic(target.topic)
    if leader_id is not None and topic is not None:
        await append_elsewhere(environment, leader_id, target, topic.topic_id, encoded)
        return
    partition = environment.replicas.leader(*target)
    appended = partition.append(memoryview(encoded), now_ms, for_all=True)
    await committed(partition, appended.last_offset + 1, environment.config.request_timeout_ms)


async def append_elsewhere(
    environment: Environment, leader_id: int, target: TopicPartition, topic_id: Uuid, encoded: bytearray
) -> None:
    """Has another broker append a batch, and returns once it is committed. Raises KafkaError."""
    data = produce.TopicProduceData(
        name=target.topic,
        topic_id=topic_id,
        partition_data=[produce.PartitionProduceData(index=target.partition, records=encoded)],
    )
    request = produce.ProduceRequest(acks=ALL, timeout_ms=environment.config.request_timeout_ms, topic_data=[data])
    try:
        response = await environment.anywhere().send(leader_id, PURPOSE, request, produce.ProduceResponse)
    except (errors.PeerError, ProtocolError) as error:
        raise anywhere.as_kafka_error(error) from error
    answers = [partition for topic in response.responses for partition in topic.partition_responses]
    if not answers:
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the leader's answer lacks the partition")
    for partition in answers:
        if partition.error_code:
            raise KafkaError(error_code(partition.error_code), partition.error_message or None)

"""DescribeProducers (61): describes the active producers of partitions, with their open transactions (KIP-664)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import each
from broker.request.authorisation import READ_TOPIC
from broker.request.turns import Turns
from coordinator.cluster.topics import names
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from storage.producers.entry import ProducerEntry

NOT_HERE = "This server does not host this topic-partition."


async def describe_producers(call: Call[DescribeProducersRequest]) -> DescribeProducersResponse:
    turns = call.turns()
    topics = [
        TopicResponse(name=topic.name, partitions=await describe_topic(call, topic, turns))
        for topic in call.request.topics
    ]
    return DescribeProducersResponse(topics=topics)


async def describe_topic(
    call: Call[DescribeProducersRequest], topic: TopicRequest, turns: Turns
) -> list[PartitionResponse]:
    try:
        names.validate(topic.name)
        if call.broker.image.topic(topic.name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HERE)
    except KafkaError as error:
        return [failed(index, error.code, error.message) for index in topic.partition_indexes]
    named = list(dict.fromkeys(topic.partition_indexes))
    described = await turns.map(partial(describe, call, topic.name), named)
    by_index = dict(zip(named, described, strict=True))
    return await turns.map(partial(repeated, call, by_index), topic.partition_indexes)


def repeated(
    call: Call[DescribeProducersRequest], by_index: Mapping[int, PartitionResponse], index: int
) -> PartitionResponse:
    """Returns the answer for a partition. A partition that is named again has the same answer again."""
    answer = by_index[index]
    call.count(len(answer.active_producers))
    return answer


def describe(call: Call[DescribeProducersRequest], topic: str, index: int) -> PartitionResponse:
    try:
        partition = call.broker.replicas.partition(topic, index)
    except KafkaError as error:
        return failed(index, error.code, None)
    producers = [describe_producer(entry) for entry in partition.producers]
    return PartitionResponse(partition_index=index, error_code=0, active_producers=producers)


def failed(index: int, code: ErrorCode, message: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message, active_producers=[])


def describe_producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )


API = Api(
    DescribeProducersRequest,
    DescribeProducersResponse,
    describe_producers,
    authorize=each(READ_TOPIC),
    entries=(Entries("topics", "topics", Entries("partition_indexes", "partitions")),),
)

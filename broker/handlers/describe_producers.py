"""DescribeProducers (61): the producers that a partition remembers, and their open transactions (KIP-664)."""

from __future__ import annotations

from broker.dispatch import Api, Call
from protocol.errors import KafkaError
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from storage.producer_entry import ProducerEntry


def describe_producers(call: Call[DescribeProducersRequest]) -> DescribeProducersResponse:
    topics = [
        TopicResponse(
            name=topic.name, partitions=[describe(call, topic.name, index) for index in topic.partition_indexes]
        )
        for topic in call.request.topics
    ]
    return DescribeProducersResponse(topics=topics)


def describe(call: Call[DescribeProducersRequest], topic: str, index: int) -> PartitionResponse:
    try:
        log = call.broker.replicas.partition(topic, index).log
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code, active_producers=[])
    producers = [describe_producer(entry) for entry in log.producer_state.producers.values()]
    return PartitionResponse(partition_index=index, error_code=0, active_producers=producers)


def describe_producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )


API = Api(DescribeProducersRequest, DescribeProducersResponse, describe_producers)

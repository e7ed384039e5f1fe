"""The transactional batches of a Produce, and their verification by the transaction's coordinator.

Source: ReplicaManager.maybeSendPartitionsToTransactionCoordinator, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from broker.exchange.turns import Turns, batches
from broker.requests.call import Call
from broker.requests.produce_rules import is_transactional
from broker.requests.verification import NOTHING, Supports, Verified, all_failed, verify
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import BatchHeader, read_header
from protocol.types import TopicPartition

FIRST_TOPIC_ID_VERSION = 13
FIRST_ABORTABLE_VERSION, FIRST_ADDING_VERSION = 11, 12


def name_of(call: Call[ProduceRequest], topic: TopicProduceData) -> str | None:
    by_id = call.version >= FIRST_TOPIC_ID_VERSION
    return call.broker.replicas.name_of(topic.topic_id) if by_id else topic.name


def transactional_batches(call: Call[ProduceRequest]) -> dict[TopicPartition, BatchHeader]:
    """Returns the headers of the batches that are part of a transaction; invalid ones are left to the append."""
    headers: dict[TopicPartition, BatchHeader] = {}
    for topic in call.request.topic_data:
        add_transactional(call, topic, topic.partition_data, headers)
    return headers


async def transactional_batches_in_turns(call: Call[ProduceRequest], turns: Turns) -> dict[TopicPartition, BatchHeader]:
    headers: dict[TopicPartition, BatchHeader] = {}
    for topic in call.request.topic_data:
        for some in batches(topic.partition_data):
            add_transactional(call, topic, some, headers)
            await turns.next()
    return headers


def add_transactional(
    call: Call[ProduceRequest],
    topic: TopicProduceData,
    partitions: Sequence[PartitionProduceData],
    headers: dict[TopicPartition, BatchHeader],
) -> None:
    for data in partitions:
        if is_transactional(data.records):
            headers[TopicPartition(name_of(call, topic) or "", data.index)] = read_header(data.records)


async def verified_batches(call: Call[ProduceRequest], transactional: Mapping[TopicPartition, BatchHeader]) -> Verified:
    """Has the transaction's coordinator verify the request's batches whose partitions are here."""
    transactional_id = call.request.transactional_id
    of_producers = {name: header for name, header in transactional.items() if header.producer_id >= 0}
    here = {name: header for name, header in of_producers.items() if is_here(call, name)}
    if not here or transactional_id is None:
        return NOTHING
    try:
        check_one_producer(here.values())
    except KafkaError as error:
        return all_failed(names(call), error)
    supports = Supports.of(call.version, FIRST_ABORTABLE_VERSION, FIRST_ADDING_VERSION)
    return await verify(call.broker, transactional_id, here, supports, call.now_ms)


def is_here(call: Call[ProduceRequest], name: TopicPartition) -> bool:
    return name.partition in call.broker.replicas.topic(name.topic)


def names(call: Call[ProduceRequest]) -> list[TopicPartition]:
    """Returns all partitions of the request."""
    return [
        TopicPartition(name_of(call, topic) or "", data.index)
        for topic in call.request.topic_data
        for data in topic.partition_data
    ]


def check_one_producer(headers: Iterable[BatchHeader]) -> None:
    """Raises INVALID_PRODUCER_ID_MAPPING unless all batches are of one producer."""
    if len({(header.producer_id, header.producer_epoch) for header in headers}) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "transactional records of more than one producer in a request"
        )

"""Produce as messages: requests of old versions and unusual requests, and answers with errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from broker.produce.request import FIRST_TOPIC_ID_VERSION, NO_RECORDS, ParsedProduce, ProducedPartition, ProducedTopic
from broker.produce.rules import RecordsRejected, batch_of, entry_error, is_transactional
from broker.replica.replicas import compact
from broker.request.leaders import nodes
from broker.request.turns import Turns
from protocol.errors import ErrorCode
from protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from protocol.schema import since

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker
    from broker.request.context import Context

FIRST_LEADER_VERSION = since(PartitionProduceResponse, "current_leader")


def parsed(request: ProduceRequest, version: int) -> ParsedProduce:
    """Returns the request as `wire.parse` returns it."""
    produced = ParsedProduce(version, request.transactional_id, request.acks, request.timeout_ms, [], [])
    for _ in parse_each(request, produced):
        pass
    return produced


async def parsed_in_turns(request: ProduceRequest, version: int, turns: Turns) -> ParsedProduce:
    """Returns the same as `parsed`, in several turns of the event loop. The request has many partitions, and its own
    buffer."""
    produced = ParsedProduce(version, request.transactional_id, request.acks, request.timeout_ms, [], [])
    for _ in parse_each(request, produced):
        await turns.next()
    return produced


def parse_each(request: ProduceRequest, parsed: ParsedProduce) -> Iterator[None]:
    """Adds the topics that have partitions, and their partitions, to `parsed`; yields after each partition."""
    uses_ids = parsed.version >= FIRST_TOPIC_ID_VERSION
    for data in request.topic_data:
        if not data.partition_data:
            continue
        first = len(parsed.partitions)
        topic = (
            ProducedTopic(data.topic_id, True, first)
            if uses_ids
            else ProducedTopic(compact(data.name), False, first, data.name)
        )
        parsed.topics.append(topic)
        for partition in data.partition_data:
            produced = parsed_partition(topic, partition, parsed.version, comes_first=not parsed.is_transactional)
            parsed.is_transactional = parsed.is_transactional or produced.is_transactional
            parsed.partitions.append(produced)
            topic.end += 1
            yield


def parsed_partition(
    topic: ProducedTopic, data: PartitionProduceData, version: int, comes_first: bool
) -> ProducedPartition:
    """Returns the records for a partition, with the error that rejects them. Kafka checks records that come before the
    first transactional batch also before it looks up their partition, and explains only the errors found then."""
    records = data.records if isinstance(data.records, memoryview) else NO_RECORDS
    produced = ProducedPartition(topic, data.index, records, is_transactional(records))
    corrupt = entry_error(records) if comes_first else None
    if corrupt is not None:
        produced.rejection, produced.is_corrupt = corrupt, True
        return produced
    try:
        produced.records = batch_of(version, records)
    except RecordsRejected as error:
        produced.rejection = RecordsRejected(error.code)
    return produced


def response_message(broker: Broker, context: Context, request: ParsedProduce) -> ProduceResponse:
    """Returns the answer as a message, with the errors of partitions and their leaders (KIP-951)."""
    message = ProduceResponse(responses=[answered(broker, request, topic) for topic in request.topics])
    return message if request.version < FIRST_LEADER_VERSION else with_leaders(broker, context, message, request)


async def response_in_turns(broker: Broker, context: Context, request: ParsedProduce) -> ProduceResponse:
    """Returns the same as `response_message`, in several turns of the event loop."""
    turns = Turns(broker.clock)
    message = ProduceResponse(responses=[])
    for topic in request.topics:
        await turns.next()
        answers = await turns.map(answered_partition, request.partitions_of(topic))
        message.responses.append(answered_topic(broker, topic, answers))
    if request.version < FIRST_LEADER_VERSION:
        return message
    leaders: dict[int, None] = {}
    for topic, answer in zip(request.topics, message.responses, strict=True):
        name = topic.name(broker.replicas) or ""
        await turns.map(partial(add_leader, broker, name, leaders), answer.partition_responses)
    return with_endpoints(broker, context, message, leaders)


def answered(broker: Broker, request: ParsedProduce, topic: ProducedTopic) -> TopicProduceResponse:
    """Returns a topic's part of the message."""
    return answered_topic(broker, topic, list(map(answered_partition, request.partitions_of(topic))))


def answered_partition(partition: ProducedPartition) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition.index,
        error_code=partition.error_code,
        base_offset=partition.base_offset,
        log_append_time_ms=partition.log_append_time_ms,
        log_start_offset=partition.log_start_offset,
        record_errors=list(partition.record_errors),
        error_message=partition.error_message,
    )


def answered_topic(
    broker: Broker, topic: ProducedTopic, answers: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    if topic.uses_id:
        return TopicProduceResponse(topic_id=topic.key, partition_responses=answers)
    return TopicProduceResponse(name=topic.name(broker.replicas) or "", partition_responses=answers)


def with_leaders(broker: Broker, context: Context, message: ProduceResponse, request: ParsedProduce) -> ProduceResponse:
    """Adds the leaders of the partitions that other brokers lead to the response (KIP-951)."""
    leaders: dict[int, None] = {}
    for topic, answers in zip(request.topics, message.responses, strict=True):
        name = topic.name(broker.replicas) or ""
        for answer in answers.partition_responses:
            add_leader(broker, name, leaders, answer)
    return with_endpoints(broker, context, message, leaders)


def add_leader(broker: Broker, name: str, leaders: dict[int, None], answer: PartitionProduceResponse) -> None:
    """Adds the leader of a partition to its answer and to `leaders`, if another broker leads it."""
    if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader_id, leader_epoch = broker.replicas.current_leader(name, answer.index)
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        leaders[leader_id] = None


def with_endpoints(
    broker: Broker, context: Context, message: ProduceResponse, leaders: dict[int, None]
) -> ProduceResponse:
    """Adds the endpoints of these brokers."""
    if leaders:
        message.node_endpoints = [
            NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes(broker.image, context.listener, leaders)
        ]
    return message

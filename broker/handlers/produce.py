"""Produce (0): appends record batches to partitions.

v0-2 carry message sets (v0, then v1 with timestamps), which are up-converted; v1 adds the throttle time, v2 the log
append time, v3 batches v2 and the transactional id (KIP-98), v5 the log start offset, v7 allows zstd (KIP-110), v8
per-record errors (KIP-467), v9 is flexible, v10 returns the current leader (KIP-951), v11 TRANSACTION_ABORTABLE, and
v12 adds partitions to the transaction by writing to them (KIP-890), v13 names topics by id (KIP-516).
With acks=0 nothing is answered; an error then closes the connection, which is how such a producer learns of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.exchange.authorisation import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID, by_handler
from broker.exchange.context import Context
from broker.exchange.eager import Waiting, begin
from broker.exchange.leaders import nodes
from broker.exchange.turns import ENTRIES, Turns, batches
from broker.replica.partition import Partition
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.produce_commit import ParkedProduce, Uncommitted
from broker.requests.produce_rules import (
    EarlyLook,
    RecordsRejected,
    checked_records,
    early_error,
    failed_partition,
    not_verified,
)
from broker.requests.produce_transaction import (
    FIRST_TOPIC_ID_VERSION,
    name_of,
    transactional_batches,
    transactional_batches_in_turns,
    verified_batches,
)
from broker.requests.verification import NOTHING, Verified
from coordinator.cluster.topics.names import is_internal
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from storage.appending.append import Settled
from storage.appending.records_check import TooLong

if TYPE_CHECKING:
    from broker.requests.broker import Broker

ADMIN_CLIENT = "__admin_client"
"""The client id that may write to internal topics, as in Kafka, which trusts its users to know what they do."""

ALL = -1
VALID_ACKS = (ALL, 0, 1)
FIRST_LEADER_VERSION = 10
FIRST_BATCH_VERSION = 3
"""Earlier ones carry messages, which become a batch."""


class DeferredAppend(NamedTuple):
    """Records whose check takes long, and the position of their answer."""

    answers: list[PartitionProduceResponse]
    position: int
    topic: str | None
    data: PartitionProduceData


class Unfinished(NamedTuple):
    """The unfinished part of a request: appends that wait for a check of their records, and for their commit."""

    deferred: list[DeferredAppend]
    deferred_names: set[tuple[str | None, int]]
    """Topic and partition of the deferred appends: later records of theirs must wait too."""

    uncommitted: list[Uncommitted]
    early: EarlyLook


async def produce(call: Call[ProduceRequest]) -> ProduceResponse | ParkedProduce | None:
    """Appends to each partition by itself: one that fails affects no other. A request of many partitions takes turns
    with other requests, and is appended whole even if its client disconnects meanwhile."""
    if sum(len(topic.partition_data) for topic in call.request.topic_data) <= ENTRIES:
        return await produced(call, None)
    hold_records(call.request)
    return await call.broker.record_work.to_its_end(produced(call, call.turns()))


async def produced(call: Call[ProduceRequest], turns: Turns | None) -> ProduceResponse | ParkedProduce | None:
    transactional = transactional_batches(call) if turns is None else await transactional_batches_in_turns(call, turns)
    if transactional and call.request.transactional_id is None:
        no_id = RecordsRejected(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return reject_all(call, early_error(call.request) or no_id)
    verified = NOTHING
    if transactional:
        verification = begin(verified_batches(call, transactional))
        if isinstance(verification, Waiting):
            hold_records(call.request)
            verification = await verification
        verified = verification
    unfinished = Unfinished([], set(), [], EarlyLook(call.request))
    if turns is None:
        now_ms = call.now_ms
        topics = [
            produce_topic(call, topic, verified, now_ms, unfinished)
            for topic in call.request.topic_data
            if topic.partition_data
        ]
    else:
        topics = await produce_topics_in_turns(call, verified, unfinished, turns)
    response = ProduceResponse(responses=topics)
    if unfinished.deferred:
        hold_records(call.request)
        await call.broker.record_work.to_its_end(append_deferred(call, verified, unfinished))
    return await acknowledge(call, response, unfinished.uncommitted)


async def produce_topics_in_turns(
    call: Call[ProduceRequest], verified: Verified, unfinished: Unfinished, turns: Turns
) -> list[TopicProduceResponse]:
    topics: list[TopicProduceResponse] = []
    for topic in call.request.topic_data:
        if topic.partition_data:
            answers: list[PartitionProduceResponse] = []
            for some in batches(topic.partition_data):
                produce_partitions(call, name_of(call, topic), some, verified, call.now_ms, unfinished, answers)
                await turns.next()
            topics.append(answer_of(topic, answers))
    return topics


async def append_deferred(call: Call[ProduceRequest], verified: Verified, unfinished: Unfinished) -> None:
    """Appends the deferred records, one partition after the other, and puts each answer at its position."""
    for answers, position, topic, data in unfinished.deferred:
        answers[position] = await produce_when_settled(call, topic, data, verified, unfinished)


async def produce_when_settled(
    call: Call[ProduceRequest],
    topic: str | None,
    data: PartitionProduceData,
    verified: Verified,
    unfinished: Unfinished,
) -> PartitionProduceResponse:
    """Returns a partition's answer after a thread has checked its records. Meanwhile the topic's rules may change, or
    the topic be deleted."""
    settled: Settled | None = None
    while True:
        now_ms = call.now_ms
        try:
            return produce_partition(call, topic, data, verified, now_ms, unfinished, settled)
        except TooLong:
            partition = call.broker.replicas.partition(topic, data.index)
        records = checked_records(call.version, data.records)
        try:
            settled = await call.broker.record_work.settled(records, partition.append_rules, now_ms)
        except KafkaError as error:
            return failed_partition(data.index, error, partition)


async def acknowledge(
    call: Call[ProduceRequest], response: ProduceResponse, uncommitted: Sequence[Uncommitted]
) -> ProduceResponse | ParkedProduce | None:
    """Returns the answer that the producer's acks ask for, after the flushes that its topics require."""
    if call.request.acks != 0:
        if unflushed := [*to_be_flushed(call, response)]:
            await flush(call, unflushed)
        return when_committed(call, response, [pending for pending in uncommitted if not pending.answer.error_code])
    errors = [p.error_code for topic in response.responses for p in topic.partition_responses if p.error_code]
    if errors:
        raise ProtocolError(f"Produce with acks=0 failed with {error_code(errors[0]).name}")
    return None


def reject_all(call: Call[ProduceRequest], error: RecordsRejected) -> ProduceResponse:
    """Returns the response that rejects the whole request, unknown partitions included."""
    if call.request.acks == 0:
        raise ProtocolError(f"Produce with acks=0 failed with {error.code.name}")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[failed_partition(data.index, error) for data in topic.partition_data],
            )
            for topic in call.request.topic_data
            if topic.partition_data
        ]
    )


def when_committed(
    call: Call[ProduceRequest], response: ProduceResponse, uncommitted: Sequence[Uncommitted]
) -> ProduceResponse | ParkedProduce:
    """Returns the response, or parks the request until other replicas have what was appended."""
    finish = partial(with_leaders, call.broker, call.context)
    if not uncommitted:
        return finish(response)
    timeout_ms = call.request.timeout_ms
    parked = ParkedProduce(call.context, response, uncommitted, finish)
    if parked.try_respond(is_last=False) is not None:
        parked.cancel()
        return response
    parked.wait(call.broker.timeouts, timeout_ms)
    return parked


def with_leaders(broker: Broker, context: Context, response: ProduceResponse) -> ProduceResponse:
    """Adds the leaders of the partitions that are led elsewhere to the response (KIP-951)."""
    if context.version < FIRST_LEADER_VERSION:
        return response
    moved = [
        (topic, answer)
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]
    if not moved:
        return response
    leaders: dict[int, None] = {}
    for topic, answer in moved:
        name = topic.name if context.version < FIRST_TOPIC_ID_VERSION else broker.replicas.name_of(topic.topic_id)
        leader_id, leader_epoch = broker.replicas.current_leader(name or "", answer.index)
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        leaders[leader_id] = None
    response.node_endpoints = [
        NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
        for one in nodes(broker.image, context.listener, leaders)
    ]
    return response


def to_be_flushed(
    call: Call[ProduceRequest], response: ProduceResponse
) -> Iterable[tuple[PartitionProduceResponse, Partition]]:
    """Yields the answers that wait for the disk, as flush.messages of their topics requires. A topic may have gone
    meanwhile."""
    requested_topics = [topic for topic in call.request.topic_data if topic.partition_data]
    for requested, topic in zip(requested_topics, response.responses, strict=True):
        partitions = call.broker.replicas.topic(name_of(call, requested) or "")
        for answer in topic.partition_responses:
            partition = None if answer.error_code else partitions.get(answer.index)
            if partition is not None and partition.must_flush:
                yield answer, partition


def hold_records(request: ProduceRequest) -> None:
    """Copies the records out of the listener's buffer, which the next request overwrites before they are used."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                data.records = memoryview(bytearray(data.records))


async def flush(call: Call[ProduceRequest], unflushed: Iterable[tuple[PartitionProduceResponse, Partition]]) -> None:
    """Waits for the disk; the answer of a partition that could not be flushed becomes the error."""

    async def flush_one(answer: PartitionProduceResponse, partition: Partition) -> None:
        try:
            await partition.flushed(call.broker.disk_work)
        except KafkaError as error:
            answer.error_code, answer.error_message, answer.base_offset = error.code, error.message, -1

    await asyncio.gather(*(flush_one(answer, partition) for answer, partition in unflushed))


def produce_topic(
    call: Call[ProduceRequest], topic: TopicProduceData, verified: Verified, now_ms: int, unfinished: Unfinished
) -> TopicProduceResponse:
    answers: list[PartitionProduceResponse] = []
    produce_partitions(call, name_of(call, topic), topic.partition_data, verified, now_ms, unfinished, answers)
    return answer_of(topic, answers)


def answer_of(topic: TopicProduceData, answers: list[PartitionProduceResponse]) -> TopicProduceResponse:
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)


def produce_partitions(
    call: Call[ProduceRequest],
    name: str | None,
    partitions: Sequence[PartitionProduceData],
    verified: Verified,
    now_ms: int,
    unfinished: Unfinished,
    answers: list[PartitionProduceResponse],
) -> None:
    """Adds the answers of some of a topic's partitions, with placeholders for those whose appends are deferred."""
    for data in partitions:
        try:
            if unfinished.deferred_names and (name, data.index) in unfinished.deferred_names:
                raise TooLong  # it comes after the records that do take long
            answers.append(produce_partition(call, name, data, verified, now_ms, unfinished))
        except TooLong:
            unfinished.deferred.append(DeferredAppend(answers, len(answers), name, data))
            unfinished.deferred_names.add((name, data.index))
            answers.append(PartitionProduceResponse(index=data.index, error_code=0, base_offset=-1))


def produce_partition(
    call: Call[ProduceRequest],
    topic: str | None,
    data: PartitionProduceData,
    verified: Verified,
    now_ms: int,
    unfinished: Unfinished,
    settled: Settled | None = None,
) -> PartitionProduceResponse:
    """Appends, and returns the answer. Adds the append to `uncommitted` when the answer has to wait for its commit.
    Raises TooLong, with nothing done, when the check of the records takes long."""
    for_all = call.request.acks == ALL
    try:
        partition = call.broker.replicas.leader(topic, data.index)
    except KafkaError as error:
        return failed_partition(data.index, unfinished.early.corrupt(data) or error)
    try:
        records = checked_records(call.version, data.records)
    except KafkaError as error:
        return failed_partition(data.index, unfinished.early.corrupt(data) or error)
    try:
        guard = None if verified is NOTHING else verified.guard_of(partition.name)
    except KafkaError as error:
        return failed_partition(data.index, not_verified(error))
    if call.request.acks not in VALID_ACKS:
        return failed_partition(data.index, KafkaError(ErrorCode.INVALID_REQUIRED_ACKS))
    if is_internal(partition.name.topic) and call.client_id != ADMIN_CLIENT:
        return failed_partition(data.index, RecordsRejected(ErrorCode.INVALID_TOPIC_EXCEPTION))
    try:
        appended = partition.append(records, now_ms, guard=guard, for_all=for_all, settled=settled)
    except KafkaError as error:
        partition.traffic.append_failed(error.code)
        return failed_partition(data.index, error, partition)
    if call.version < FIRST_BATCH_VERSION:
        partition.traffic.produce_conversions += appended.last_offset - appended.base_offset + 1
    answer = PartitionProduceResponse(
        index=data.index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    if for_all and not partition.is_alone:
        unfinished.uncommitted.append(Uncommitted(answer, partition, appended.last_offset + 1, partition.tenure))
    return answer


API = Api(ProduceRequest, ProduceResponse, produce, by_handler(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC))

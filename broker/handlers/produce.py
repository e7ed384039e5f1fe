"""Produce (0): append record batches to partitions.

v0-2 carry message sets (v0, then v1 with timestamps), which are up-converted; v1 adds the throttle time, v2 the log
append time, v3 batches v2 and the transactional id (KIP-98), v5 the log start offset, v7 allows zstd (KIP-110), v8
per-record errors (KIP-467), v9 is flexible, v10 tells the current leader (KIP-951), v11 knows TRANSACTION_ABORTABLE and
v12 adds partitions to the transaction by writing to them (KIP-890), v13 names topics by id (KIP-516).
With acks=0 nothing is answered; an error then closes the connection, which is how such a producer learns of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from broker.exchange.authorisation import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID, by_handler
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

ADMIN_CLIENT = "__admin_client"
"""The client id that may write to internal topics, as Kafka has it: whoever uses it knows what it does."""

ALL = -1
VALID_ACKS = (ALL, 0, 1)
FIRST_LEADER_VERSION = 10


class Late(NamedTuple):
    """Records that take long to look at, and the place that their answer takes."""

    answers: list[PartitionProduceResponse]
    position: int
    topic: str | None
    data: PartitionProduceData


class Appends(NamedTuple):
    """What a request's appends leave to be done."""

    late: list[Late]
    late_names: set[tuple[str | None, int]]
    """Topic and partition of `late`: what comes behind records that take long waits for them."""

    uncommitted: list[Uncommitted]
    early: EarlyLook


async def produce(call: Call[ProduceRequest]) -> ProduceResponse | ParkedProduce | None:
    """Every partition is answered on its own: one that fails takes no other with it. A request of many takes turns with
    others, and is appended whole also where its client is gone meanwhile."""
    if sum(len(topic.partition_data) for topic in call.request.topic_data) <= ENTRIES:
        return await produced(call, None)
    hold_records(call.request)
    return await call.broker.record_work.to_its_end(produced(call, call.turns()))


async def produced(call: Call[ProduceRequest], turns: Turns | None) -> ProduceResponse | ParkedProduce | None:
    transactional = transactional_batches(call) if turns is None else await transactional_batches_in_turns(call, turns)
    if transactional and call.request.transactional_id is None:
        no_id = RecordsRejected(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return refuse_all(call, early_error(call.request) or no_id)
    verified = NOTHING
    if transactional:
        vouched = begin(verified_batches(call, transactional))
        if isinstance(vouched, Waiting):
            hold_records(call.request)
            vouched = await vouched
        verified = vouched
    appends = Appends([], set(), [], EarlyLook(call.request))
    if turns is None:
        now_ms = call.now_ms
        topics = [
            produce_topic(call, topic, verified, now_ms, appends)
            for topic in call.request.topic_data
            if topic.partition_data
        ]
    else:
        topics = await produce_topics_in_turns(call, verified, appends, turns)
    response = ProduceResponse(responses=topics)
    if appends.late:
        hold_records(call.request)
        await call.broker.record_work.to_its_end(append_at_length(call, verified, appends))
    return await acknowledged(call, response, appends.uncommitted)


async def produce_topics_in_turns(
    call: Call[ProduceRequest], verified: Verified, appends: Appends, turns: Turns
) -> list[TopicProduceResponse]:
    topics: list[TopicProduceResponse] = []
    for topic in call.request.topic_data:
        if topic.partition_data:
            answers: list[PartitionProduceResponse] = []
            for some in batches(topic.partition_data):
                produce_partitions(call, name_of(call, topic), some, verified, call.now_ms, appends, answers)
                await turns.next()
            topics.append(answer_of(topic, answers))
    return topics


async def append_at_length(call: Call[ProduceRequest], verified: Verified, appends: Appends) -> None:
    """Appends what takes long, one partition after the other; an answer takes the place that was left for it."""
    for answers, position, topic, data in appends.late:
        answers[position] = await settled_and_produced(call, topic, data, verified, appends)


async def settled_and_produced(
    call: Call[ProduceRequest],
    topic: str | None,
    data: PartitionProduceData,
    verified: Verified,
    appends: Appends,
) -> PartitionProduceResponse:
    """A partition's answer. The topic's rules may change meanwhile, and the topic may go."""
    settled: Settled | None = None
    while True:
        now_ms = call.now_ms
        try:
            return produce_partition(call, topic, data, verified, now_ms, appends, settled)
        except TooLong:
            partition = call.broker.replicas.partition(topic, data.index)
        records = checked_records(call.version, data.records)
        try:
            settled = await call.broker.record_work.settled(records, partition.append_rules, now_ms)
        except KafkaError as error:
            return failed_partition(data.index, error, partition)


async def acknowledged(
    call: Call[ProduceRequest], response: ProduceResponse, uncommitted: Sequence[Uncommitted]
) -> ProduceResponse | ParkedProduce | None:
    """What a producer with these acks is answered, once the disk has what it must have."""
    if call.request.acks != 0:
        if unflushed := [*to_be_flushed(call, response)]:
            await flush(call, unflushed)
        return committed(call, response, [each for each in uncommitted if not each.answer.error_code])
    errors = [p.error_code for topic in response.responses for p in topic.partition_responses if p.error_code]
    if errors:
        raise ProtocolError(f"Produce with acks=0 failed with {error_code(errors[0]).name}")
    return None


def refuse_all(call: Call[ProduceRequest], error: RecordsRejected) -> ProduceResponse:
    """The request as a whole is refused, also what it has for partitions that are not here."""
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


def committed(
    call: Call[ProduceRequest], response: ProduceResponse, uncommitted: Sequence[Uncommitted]
) -> ProduceResponse | ParkedProduce:
    """The response, or what waits for other replicas to have what was appended."""
    finish = partial(with_leaders, call)
    if not uncommitted:
        return finish(response)
    timeout_ms = call.request.timeout_ms
    parked = ParkedProduce(call.context, response, uncommitted, finish)
    if parked.try_respond(is_last=False) is not None:
        parked.cancel()
        return response
    parked.wait(call.broker.timeouts, timeout_ms)
    return parked


def with_leaders(call: Call[ProduceRequest], response: ProduceResponse) -> ProduceResponse:
    """The response with the leaders of the partitions that are led elsewhere (KIP-951)."""
    if call.version < FIRST_LEADER_VERSION:
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
        name = topic.name if call.version < FIRST_TOPIC_ID_VERSION else call.broker.replicas.name_of(topic.topic_id)
        leader_id, leader_epoch = call.broker.replicas.current_leader(name or "", answer.index)
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        leaders[leader_id] = None
    response.node_endpoints = [
        NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
        for one in nodes(call.broker.image, call.context.listener, leaders)
    ]
    return response


def to_be_flushed(
    call: Call[ProduceRequest], response: ProduceResponse
) -> Iterable[tuple[PartitionProduceResponse, Partition]]:
    """Answers that wait for the disk, as flush.messages of their topics wants it."""
    asked_for = [topic for topic in call.request.topic_data if topic.partition_data]
    for asked, topic in zip(asked_for, response.responses, strict=True):
        partitions = call.broker.replicas.topic(name_of(call, asked) or "")
        for answer in topic.partition_responses:
            if not answer.error_code and partitions[answer.index].must_flush:
                yield answer, partitions[answer.index]


def hold_records(request: ProduceRequest) -> None:
    """Copies the records, which are in the listener's buffer: the next request will be there before they are used."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                data.records = memoryview(bytearray(data.records))


async def flush(call: Call[ProduceRequest], unflushed: Iterable[tuple[PartitionProduceResponse, Partition]]) -> None:
    """Waits for the disk; what could not be flushed is answered with the error."""

    async def flush_one(answer: PartitionProduceResponse, partition: Partition) -> None:
        try:
            await partition.flushed(call.broker.disk_work)
        except KafkaError as error:
            answer.error_code, answer.error_message, answer.base_offset = error.code, error.message, -1

    await asyncio.gather(*(flush_one(answer, partition) for answer, partition in unflushed))


def produce_topic(
    call: Call[ProduceRequest], topic: TopicProduceData, verified: Verified, now_ms: int, appends: Appends
) -> TopicProduceResponse:
    answers: list[PartitionProduceResponse] = []
    produce_partitions(call, name_of(call, topic), topic.partition_data, verified, now_ms, appends, answers)
    return answer_of(topic, answers)


def answer_of(topic: TopicProduceData, answers: list[PartitionProduceResponse]) -> TopicProduceResponse:
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)


def produce_partitions(
    call: Call[ProduceRequest],
    name: str | None,
    partitions: Sequence[PartitionProduceData],
    verified: Verified,
    now_ms: int,
    appends: Appends,
    answers: list[PartitionProduceResponse],
) -> None:
    """Adds the answers of some of a topic's partitions, with places left for those that go to `late`."""
    for data in partitions:
        try:
            if appends.late_names and (name, data.index) in appends.late_names:
                raise TooLong  # it comes after the records that do take long
            answers.append(produce_partition(call, name, data, verified, now_ms, appends))
        except TooLong:
            appends.late.append(Late(answers, len(answers), name, data))
            appends.late_names.add((name, data.index))
            answers.append(PartitionProduceResponse(index=data.index, error_code=0, base_offset=-1))


def produce_partition(
    call: Call[ProduceRequest],
    topic: str | None,
    data: PartitionProduceData,
    verified: Verified,
    now_ms: int,
    appends: Appends,
    settled: Settled | None = None,
) -> PartitionProduceResponse:
    """Appends, and answers for it; what is not committed by that, and is to be, is added to `uncommitted`. Raises
    TooLong, with nothing done."""
    for_all = call.request.acks == ALL
    try:
        partition = call.broker.replicas.leader(topic, data.index)
    except KafkaError as error:
        return failed_partition(data.index, appends.early.corrupt(data) or error)
    try:
        records = checked_records(call.version, data.records)
    except KafkaError as error:
        return failed_partition(data.index, appends.early.corrupt(data) or error)
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
        return failed_partition(data.index, error, partition)
    answer = PartitionProduceResponse(
        index=data.index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    if for_all and not partition.is_alone:
        appends.uncommitted.append(Uncommitted(answer, partition, appended.last_offset + 1, partition.tenure))
    return answer


API = Api(ProduceRequest, ProduceResponse, produce, by_handler(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC))

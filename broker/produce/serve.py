"""Serves a parsed Produce: appends to each partition separately, and waits as the producer's acks require.

A request that need not wait is answered inside the socket's callback. Source: KafkaApis.handleProduceRequest,
ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from broker.produce.delayed import DelayedProduce
from broker.produce.request import ALL, ParsedProduce, ProducedPartition, ProducedTopic
from broker.produce.rules import FIRST_BATCH_VERSION, RecordsRejected, not_verified
from broker.produce.transactions import all_open, verified_batches
from broker.produce.verification import Verified
from broker.produce.writing import response
from broker.replica.partition import Partition
from broker.request.authorisation import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from broker.request.context import Context
from broker.request.eager import Waiting, begin
from broker.request.turns import ENTRIES, Turns
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from storage.appending.append import Settled
from storage.appending.records_check import TooLong

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker

ADMIN_CLIENT: Final = "__admin_client"
"""The client id that may write to internal topics, as in Kafka."""


def serve(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Returns the answer, None with acks=0, or an object that will have the answer: a DelayedProduce, or the rest of
    the work if a coordinator or a thread is awaited. Raises ProtocolError if an append with acks=0 fails."""
    if request.is_transactional and not may_write_transaction(broker, context, request.transactional_id):
        error = rejection_of_all(request)
        for produced in request.partitions:
            produced.fail(error)
        return acknowledge(broker, context, request)
    if len(request.partitions) > ENTRIES:
        request.hold_records()
        return begin(outcome(broker.record_work.to_its_end(serve_in_turns(broker, context, request))))
    if broker.authorizer is not None:
        denied = [topic for topic in request.topics if not may_write(broker, context, topic)]
        for topic in denied:
            for produced in request.partitions_of(topic):
                produced.deny()
        request.put_last(denied)
    if request.is_transactional and not all_open(broker, request):
        verification = begin(verified_batches(broker, request))
        if isinstance(verification, Waiting):
            request.hold_records()
            return begin(serve_verified(broker, context, request, verification))
        request.verified = verification
    return append_all(broker, context, request)


async def outcome(work: Awaitable[object]) -> object:
    """Awaits the rest of a request, and returns its answer."""
    return await work


async def serve_verified(
    broker: Broker, context: Context, request: ParsedProduce, verification: Awaitable[Verified]
) -> object:
    """Appends after the transaction's coordinator, on another broker, has answered."""
    request.verified = await verification
    answer = append_all(broker, context, request)
    return await answer if isinstance(answer, Waiting) else answer


async def serve_large(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Serves a request of so many partitions that a thread decoded it."""
    if request.is_transactional and not may_write_transaction(broker, context, request.transactional_id):
        error = rejection_of_all(request)
        await Turns(broker.clock).map(lambda produced: produced.fail(error), request.partitions)
        answer = acknowledge(broker, context, request)
        return await answer if isinstance(answer, Waiting) else answer
    return await serve_in_turns(broker, context, request)


async def serve_in_turns(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Serves a request of many partitions, in turns with other requests."""
    if broker.authorizer is not None:
        turns = Turns(broker.clock)
        written = await turns.map(lambda topic: may_write(broker, context, topic), request.topics)
        denied = [topic for topic, may in zip(request.topics, written, strict=True) if not may]
        await turns.map(
            ProducedPartition.deny, [produced for topic in denied for produced in request.partitions_of(topic)]
        )
        request.put_last(denied)
    if request.is_transactional:
        request.verified = await verified_batches(broker, request)
    return await append_rest(broker, context, request, 0)


# Authorization


def may_write_transaction(broker: Broker, context: Context, transactional_id: str | None) -> bool:
    """True if the client may write in the transaction; False if the request names none."""
    if transactional_id is None:
        return False
    operation, resource = WRITE_TRANSACTIONAL_ID
    authorizer = broker.authorizer
    return authorizer is None or authorizer.allows(context, operation, resource, transactional_id)


def may_write(broker: Broker, context: Context, topic: ProducedTopic) -> bool:
    """True if the client may write to the topic. An unknown topic id has no name to check: its error comes later."""
    name = topic.name(broker.replicas)
    operation, resource = WRITE_TOPIC
    authorizer = broker.authorizer
    return name is None or authorizer is None or authorizer.allows(context, operation, resource, name)


def rejection_of_all(request: ParsedProduce) -> RecordsRejected:
    """Returns the error of a transactional request that is rejected as a whole, including its unknown partitions. It is
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED. A request without a transactional id whose records are not even a batch gets
    the error of those records instead."""
    error = RecordsRejected(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.transactional_id is None:
        return next((p.rejection for p in request.partitions if p.is_corrupt and p.rejection is not None), error)
    return error


# Appends


def append_all(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Appends to the partitions, and returns the answer as `serve` does."""
    now_ms = broker.clock.now_ms()
    for position, produced in enumerate(request.partitions):
        try:
            append(broker, context, request, produced, now_ms)
        except TooLong:
            request.hold_records()
            rest = append_rest(broker, context, request, position)
            return begin(outcome(broker.record_work.to_its_end(rest)))
    return acknowledge(broker, context, request)


async def append_rest(broker: Broker, context: Context, request: ParsedProduce, first: int) -> object:
    """Appends to the partitions from `first` on, one after the other, even if the client disconnects meanwhile."""
    turns = Turns(broker.clock)
    for position in range(first, len(request.partitions)):
        await append_when_checked(broker, context, request, request.partitions[position])
        await turns.next()
    answer = acknowledge(broker, context, request)
    return await answer if isinstance(answer, Waiting) else answer


async def append_when_checked(
    broker: Broker, context: Context, request: ParsedProduce, produced: ProducedPartition
) -> None:
    """Appends to one partition, after a thread has checked the records if that takes long. Meanwhile the topic's rules
    may change, or the topic may be deleted."""
    settled: Settled | None = None
    while True:
        now_ms = broker.clock.now_ms()
        try:
            append(broker, context, request, produced, now_ms, settled)
            return
        except TooLong:
            pass
        partition = broker.replicas.partition(produced.topic.name(broker.replicas), produced.index)
        try:
            settled = await broker.record_work.settled(produced.records, partition.append_rules, now_ms)
        except KafkaError as error:
            produced.fail(error, partition)
            return


def append(
    broker: Broker,
    context: Context,
    request: ParsedProduce,
    produced: ProducedPartition,
    now_ms: int,
    settled: Settled | None = None,
) -> None:
    """Appends to one partition, and sets its answer. Raises TooLong, with nothing done, if the check of the records
    takes long."""
    if produced.error_code:
        return  # denied
    try:
        partition = leader(broker, produced)
    except KafkaError as error:
        produced.fail(produced.rejection if produced.is_corrupt and produced.rejection is not None else error)
        return
    if produced.rejection is not None:
        produced.fail(produced.rejection)
        return
    try:
        guard = None if request.verified is None else request.verified.guard_of(partition.name)
    except KafkaError as error:
        produced.fail(not_verified(error))
        return
    rejection = rejection_of(context, request, partition)
    if rejection is not None:
        produced.fail(rejection)
        return
    for_all = request.acks == ALL
    try:
        appended = partition.append(produced.records, now_ms, guard=guard, for_all=for_all, settled=settled)
    except KafkaError as error:
        partition.traffic.append_failed(error.code)
        produced.fail(error, partition)
        return
    produced.appended(partition, appended)
    if request.version < FIRST_BATCH_VERSION:
        partition.traffic.produce_conversions += appended.last_offset - appended.base_offset + 1
    if for_all and not partition.is_alone:
        produced.end_offset, produced.tenure = appended.last_offset + 1, partition.tenure


def leader(broker: Broker, produced: ProducedPartition) -> Partition:
    """Returns the partition, which this broker leads. Raises KafkaError."""
    replicas = broker.replicas
    return produced.replica(replicas) or replicas.leader(produced.topic.name(replicas), produced.index)


def rejection_of(context: Context, request: ParsedProduce, partition: Partition) -> KafkaError | None:
    """Returns the error of records that are never appended: their acks are invalid, or only brokers may write to their
    topic."""
    if not -1 <= request.acks <= 1:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if partition.is_internal and context.client_id != ADMIN_CLIENT:
        return RecordsRejected(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return None


# Acknowledgements


def acknowledge(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Returns the answer that the producer's acks require, after the flushes that the topics require."""
    if request.acks == 0:
        code = request.first_error
        if code:
            raise ProtocolError(f"Produce with acks=0 failed with {error_code(code).name}", offset=0)
        return None
    for produced in request.partitions:
        if produced.partition is not None and produced.partition.must_flush:
            return begin(flush(broker, context, request))
    return when_committed(broker, context, request)


async def flush(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Waits for the disk, then for the commit. A partition that can't be flushed is answered with the error."""

    async def flush_partition(produced: ProducedPartition, partition: Partition) -> None:
        try:
            await partition.flushed(broker.disk_work)
        except KafkaError as error:
            produced.error_code, produced.error_message, produced.base_offset = error.code, error.message, -1

    flushes = [
        flush_partition(produced, produced.partition)
        for produced in request.partitions
        if produced.partition is not None and produced.partition.must_flush
    ]
    await asyncio.gather(*flushes)
    answer = when_committed(broker, context, request)
    return await answer if isinstance(answer, Waiting) else answer


def when_committed(broker: Broker, context: Context, request: ParsedProduce) -> object:
    """Returns the answer, or parks the request until other replicas have the appended records."""
    if request.acks != ALL:
        return response(broker, context, request)
    uncommitted = [produced for produced in request.partitions if produced.end_offset >= 0 and not produced.error_code]
    if not uncommitted:
        return response(broker, context, request)
    delayed = DelayedProduce(broker, context, request, uncommitted)
    answer = delayed.try_respond(is_last=False)
    if answer is not None:
        delayed.cancel()
        return answer
    broker.timeouts.add(delayed, max(request.timeout_ms, 0))
    return delayed

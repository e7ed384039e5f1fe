"""Produce without messages: a flexible request (version 9 and later) outside transactions, parsed in place.

handlers/produce.py makes a dozen objects per request, which costs more than the append itself. Integers are read from
`bytes`, a copy of those parts of the frame that are parsed, since compiled code does that without a call; the answer is
written likewise (`produce_answer.py`). Source of the layout: protocol/messages/produce.py, whose codec is the oracle.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, TypeAlias

from librt.strings import read_i16_be, read_i32_be

from broker.exchange.authorisation import Operation, Resource
from broker.exchange.eager import begin
from broker.fast.produce_answer import ProduceAnswer, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.primitives import read_uvarint_tail
from protocol.records.batch import (
    AT_ATTRIBUTES,
    AT_LENGTH,
    AT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    TRANSACTIONAL,
)
from storage.appending.append import Settled
from storage.appending.records_check import TooLong

if TYPE_CHECKING:
    from broker.exchange.context import Context
    from broker.replica.partition import Partition
    from broker.requests.broker import Broker

FIRST_VERSION: Final = 9
FIRST_TOPIC_ID_VERSION: Final = 13
ALL: Final = -1
"""acks=all: all in-sync replicas."""
UUID_BYTES: Final = 16
WRITE: Final = Operation.WRITE
TOPIC: Final = Resource.TOPIC
"""Found once: Python 3.11 takes a seventh of a microsecond for a member of an enum."""

BETWEEN_BYTES: Final = 192
"""An upper bound of the bytes between the records of one partition and the attributes of the next one's: the end of a
topic, the name of another, counts and lengths."""
MAX_ONE_BYTE: Final = 0x7F
"""The largest count or length that takes one byte; each is encoded plus one (KIP-482)."""

Target: TypeAlias = "tuple[Partition, int, memoryview]"
"""A partition, its number, and the records for it."""


def produce(broker: Broker, context: Context, frame: memoryview, front: bytes, position: int) -> object:
    """Appends the records of the request whose body is at `position`. Returns its answer, or what will have it: a
    request that is parked until its records are committed, or that waits where the check of its records takes long;
    None leaves it to the handler."""
    try:
        topics = parse(broker, context.version, frame, front, position)
    except (IndexError, KeyError):
        return None
    if topics is None or (broker.authorizes and not may_write(broker, context, topics)):
        return None
    acks: int = read_i16_be(front, position + 1)
    timeout_ms: int = read_i32_be(front, position + 3)
    now_ms = broker.clock.now_ms()
    answer = ProduceAnswer(context, acks == ALL, len(topics))
    for number, (key, targets) in enumerate(topics):
        answer.begin_topic(key, len(targets))
        for first, target in enumerate(targets):
            try:
                append(answer, target, now_ms)
            except TooLong:
                rest = [(key, targets[first:]), *topics[number + 1 :]]
                work = append_rest(broker, context, answer, with_copied_records(rest), timeout_ms)
                return begin(outcome(broker.record_work.to_its_end(work)))
        answer.end_topic()
    return answered(broker, context, answer, timeout_ms)


def may_write(broker: Broker, context: Context, topics: list[tuple[bytes, list[Target]]]) -> bool:
    """True where the client may write to all of the topics."""
    authorizer = broker.authorizer
    for _, targets in topics:
        name = targets[0][0].name.topic
        if not authorizer.allows(context, WRITE, TOPIC, name):
            return False
    return True


async def outcome(work: Awaitable[object]) -> object:
    """Awaits the rest of a request, and returns what answers it."""
    return await work


def with_copied_records(topics: list[tuple[bytes, list[Target]]]) -> list[tuple[bytes, list[Target]]]:
    """Returns the topics with copies of their records, as the next read of the socket overwrites the buffer."""
    return [
        (key, [(partition, index, memoryview(bytearray(records))) for partition, index, records in targets])
        for key, targets in topics
    ]


async def append_rest(
    broker: Broker, context: Context, answer: ProduceAnswer, topics: list[tuple[bytes, list[Target]]], timeout_ms: int
) -> object:
    """Appends the rest of a request, one partition after the other, and returns the answer, in which the first topic
    has begun already, or what will have it."""
    begun = True
    for key, targets in topics:
        if not begun:
            answer.begin_topic(key, len(targets))
        begun = False
        for target in targets:
            await append_when_checked(broker, key, target, answer)
        answer.end_topic()
    return answered(broker, context, answer, timeout_ms)


async def append_when_checked(broker: Broker, key: bytes, target: Target, answer: ProduceAnswer) -> None:
    """Appends to one partition once a thread has checked the records. Where the partition is gone by then, or has to
    wait for the disk, nothing is appended, and the client retries."""
    partition, index, records = target
    settled: Settled | None = None
    while True:
        now_ms = broker.clock.now_ms()
        try:
            if broker.replicas.by_key.get(key, {}).get(index) is not partition or waits_for_disk(partition):
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            append(answer, target, now_ms, settled)
            return
        except TooLong:
            rules = partition.append_rules
        except KafkaError as error:
            answer.refuse(partition, index, error)
            return
        try:
            settled = await broker.record_work.settled(records, rules, now_ms)
        except KafkaError as error:
            answer.refuse(partition, index, error)
            return


def append(answer: ProduceAnswer, target: Target, now_ms: int, settled: Settled | None = None) -> None:
    """Appends to one partition, and writes its part of the answer. Raises TooLong, with nothing done, for records whose
    check takes long."""
    partition, index, records = target
    try:
        appended = partition.append(records, now_ms, for_all=answer.for_all, settled=settled)
    except KafkaError as error:
        answer.refuse(partition, index, error)
        return
    answer.append(partition, index, appended)


def parse(
    broker: Broker, version: int, frame: memoryview, front: bytes, position: int
) -> list[tuple[bytes, list[Target]]] | None:
    """Returns the appends by topic, whose key is the name or id as the frame has it. Returns None, or raises IndexError
    or KeyError, for an unusual request."""
    if front[position]:  # a transactional id
        return None
    acks: int = read_i16_be(front, position + 1)
    topic_count = front[position + 7]
    if (acks != ALL and acks != 1) or topic_count > MAX_ONE_BYTE:
        return None
    topics: list[tuple[bytes, list[Target]]] = []
    base, at = 0, position + 8  # `front` is the frame from `base` on
    for _ in range(topic_count - 1):
        start = at
        at += UUID_BYTES if version >= FIRST_TOPIC_ID_VERSION else front[at]
        key = front[start:at]
        partitions = broker.replicas.by_key[key]
        partition_count = front[at]
        if not 1 < partition_count <= MAX_ONE_BYTE:
            return None
        at += 1
        targets: list[Target] = []
        for _ in range(partition_count - 1):
            index: int = read_i32_be(front, at)
            size: int = front[at + 4]
            at += 5
            if size > MAX_ONE_BYTE:
                size, at = read_uvarint_tail(front, at, size)
            size -= 1
            length: int = read_i32_be(front, at + AT_LENGTH)
            unusual = size < HEADER_SIZE or front[at + AT_MAGIC] != MAGIC_V2
            if unusual or front[at + AT_ATTRIBUTES + 1] & TRANSACTIONAL or length != size - LOG_OVERHEAD:
                return None  # not one batch
            partition = partitions[index]
            if waits_for_disk(partition):
                return None
            begin_at = base + at
            base, at = begin_at + size, 1
            targets.append((partition, index, frame[begin_at:base]))
            front = bytes(frame[base : base + BETWEEN_BYTES])
            if front[0]:  # tags of the partition; an error if the records are cut short
                return None
        if front[at]:  # tags of the topic
            return None
        at += 1
        topics.append((key, targets))
    return topics if base + at + 1 == len(frame) and not front[at] else None


def waits_for_disk(partition: Partition) -> bool:
    """True where an append may have to wait for the disk."""
    return partition.answers_later and partition.flushes

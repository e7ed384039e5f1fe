"""Produce without messages: a flexible request (version 9 and later) outside transactions, parsed in place.

handlers/produce.py makes a dozen objects per request, which costs more than the append itself. Integers are read from
`bytes`, a copy of those parts of the frame that are parsed, since compiled code does that without a call; the answer is
written likewise. Source of the layout: protocol/messages/produce.py, whose codec is the oracle.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, TypeAlias

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be, write_i64_be

from broker.exchange.authorisation import Operation, Resource
from broker.exchange.pending import Running
from broker.requests.produce_rules import failed_partition
from protocol.codec import part_encoder
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse
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
from protocol.types import Buffer
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

SIZE_BYTES: Final = 4
BETWEEN_BYTES: Final = 192
"""An upper bound of the bytes between the records of one partition and the attributes of the next one's: the end of a
topic, the name of another, counts and lengths."""
MAX_ONE_BYTE: Final = 0x7F
"""The largest count or length that takes one byte; each is encoded plus one (KIP-482)."""
END: Final = bytes(5)
"""Throttle time, no tags."""

Target: TypeAlias = "tuple[Partition, int, memoryview]"
"""A partition, its number, and the records for it."""


def produce(
    broker: Broker, context: Context, frame: memoryview, front: bytes, position: int
) -> list[Buffer] | Running | None:
    """Appends the records of the request whose body is at `position`, and returns its answer, or a request that waits
    where the check of its records takes long; None leaves it to the handler."""
    version = context.version
    try:
        topics = parse(broker, version, frame, front, position)
    except (IndexError, KeyError):
        return None
    if topics is None or (broker.authorizes and not may_write(broker, context, topics)):
        return None
    now_ms = broker.clock.now_ms()
    answer = BytesWriter()
    write_i32_be(answer, 0)  # the size, once it is known
    write_i32_be(answer, context.correlation_id)
    answer.append(0)  # no tags
    answer.append(len(topics) + 1)
    for number, (key, targets) in enumerate(topics):
        answer.write(key)
        answer.append(len(targets) + 1)
        for first, (partition, index, records) in enumerate(targets):
            try:
                append(partition, index, records, now_ms, version, answer)
            except TooLong:
                rest = [(key, targets[first:]), *topics[number + 1 :]]
                acks: int = read_i16_be(front, position + 1)
                work = broker.record_work.to_its_end(
                    append_rest(broker, version, acks, answer, with_copied_records(rest))
                )
                return Running(finish_later(context, work))
        answer.append(0)
    return completed(answer)


def may_write(broker: Broker, context: Context, topics: list[tuple[bytes, list[Target]]]) -> bool:
    """True where the client may write to all of the topics."""
    authorizer = broker.authorizer
    for _, targets in topics:
        name = targets[0][0].name.topic
        if not authorizer.allows(context, Operation.WRITE, Resource.TOPIC, name):
            return False
    return True


def completed(answer: BytesWriter) -> list[Buffer]:
    """Returns the whole answer, with its size filled in."""
    answer.write(END)
    size = len(answer) - SIZE_BYTES
    for n in range(SIZE_BYTES):
        answer[n] = size >> 24 - 8 * n & 0xFF
    return [answer.getvalue()]


async def finish_later(context: Context, work: Awaitable[list[Buffer]]) -> list[Buffer] | None:
    """Awaits the answer, and returns it as the interceptors have it."""
    return context.finish(await work)


def with_copied_records(topics: list[tuple[bytes, list[Target]]]) -> list[tuple[bytes, list[Target]]]:
    """Returns the topics with copies of their records, as the next read of the socket overwrites the buffer."""
    return [
        (key, [(partition, index, memoryview(bytearray(records))) for partition, index, records in targets])
        for key, targets in topics
    ]


async def append_rest(
    broker: Broker, version: int, acks: int, answer: BytesWriter, topics: list[tuple[bytes, list[Target]]]
) -> list[Buffer]:
    """Appends the rest of a request, one partition after the other, and returns the answer, in which the first topic
    has begun already."""
    begun = True
    for key, targets in topics:
        if not begun:
            answer.write(key)
            answer.append(len(targets) + 1)
        begun = False
        for target in targets:
            await append_when_checked(broker, key, target, version, acks, answer)
        answer.append(0)
    return completed(answer)


async def append_when_checked(
    broker: Broker, key: bytes, target: Target, version: int, acks: int, answer: BytesWriter
) -> None:
    """Appends to one partition once a thread has checked the records. Where the partition is gone by then, or has
    replicas to wait for, nothing is appended, and the client retries."""
    partition, index, records = target
    settled: Settled | None = None
    while True:
        now_ms = broker.clock.now_ms()
        try:
            if broker.replicas.by_key.get(key, {}).get(index) is not partition or is_slow(partition, acks):
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            append(partition, index, records, now_ms, version, answer, settled)
            return
        except TooLong:
            rules = partition.append_rules
        except KafkaError as error:
            refuse(version, index, error, partition, answer)
            return
        try:
            settled = await broker.record_work.settled(records, rules, now_ms)
        except KafkaError as error:
            refuse(version, index, error, partition, answer)
            return


def append(
    partition: Partition,
    index: int,
    records: memoryview,
    now_ms: int,
    version: int,
    answer: BytesWriter,
    settled: Settled | None = None,
) -> None:
    """Appends to one partition, and writes its part of the answer. Raises TooLong, with nothing done, for records whose
    check takes long."""
    try:
        appended = partition.append(records, now_ms, settled=settled)
    except KafkaError as error:
        refuse(version, index, error, partition, answer)
        return
    write_i32_be(answer, index)
    write_i16_be(answer, 0)  # no error
    write_i64_be(answer, appended.base_offset)
    write_i64_be(answer, appended.log_append_time_ms)
    write_i64_be(answer, appended.log_start_offset)
    answer.append(1)  # no record errors
    write_i16_be(answer, 0)  # no message, no tags


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
            if is_slow(partition, acks):
                return None
            begin = base + at
            base, at = begin + size, 1
            targets.append((partition, index, frame[begin:base]))
            front = bytes(frame[base : base + BETWEEN_BYTES])
            if front[0]:  # tags of the partition; an error if the records are cut short
                return None
        if front[at]:  # tags of the topic
            return None
        at += 1
        topics.append((key, targets))
    return topics if base + at + 1 == len(frame) and not front[at] else None


def is_slow(partition: Partition, acks: int) -> bool:
    """True when an append has to wait for other replicas, or for the disk."""
    return partition.answers_later and (acks == ALL or partition.flushes)


def refuse(version: int, index: int, error: KafkaError, partition: Partition, answer: BytesWriter) -> None:
    """Writes a partition's answer with its error, encoded as by the handler, and counts it."""
    partition.traffic.append_failed(error.code)
    parts: list[Buffer] = []
    part_encoder(ProduceResponse, PartitionProduceResponse, version)(
        failed_partition(index, error, partition), parts.append
    )
    answer.write(b"".join(parts))

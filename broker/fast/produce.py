"""Produce without objects: a flexible request (version 9 and later) outside transactions, walked in place.

The way through handlers/produce.py makes a dozen objects per request, which costs more than the append itself.
Integers are read out of `bytes`, a copy of the few that are looked at, since compiled code does that without a call;
so are they written. Source of the layout: protocol/messages/produce.py, whose codec is the oracle.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, TypeAlias

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be, write_i64_be

from broker.exchange.pending import Running
from broker.requests.produce_rules import refused
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
"""Acks of all replicas in sync."""
UUID_BYTES: Final = 16

SIZE_BYTES: Final = 4
BETWEEN_BYTES: Final = 192
"""More than there can be between the records of one partition and the attributes of the next one's: the end of a topic,
the name of another, counts and lengths."""
MOST: Final = 0x7F
"""Counts and lengths up to it take one byte; all are one more than what they count (KIP-482)."""
END: Final = bytes(5)
"""Throttle time, no tags."""

Target: TypeAlias = "tuple[Partition, int, memoryview]"
"""A partition, its number, and the records for it."""


def produce(
    broker: Broker, context: Context, frame: memoryview, front: bytes, position: int
) -> list[Buffer] | Running | None:
    """Returns the answer to the request whose body is at `position`; later, if records take long to look at."""
    version = context.version
    try:
        topics = parse(broker, version, frame, front, position)
    except (IndexError, KeyError):
        return None
    if topics is None:
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
                work = broker.record_work.to_its_end(continued(broker, version, acks, answer, copied(rest)))
                return Running(finished(context, work))
        answer.append(0)
    return ended(answer)


def ended(answer: BytesWriter) -> list[Buffer]:
    """Returns the whole answer, with its size."""
    answer.write(END)
    size = len(answer) - SIZE_BYTES
    for n in range(SIZE_BYTES):
        answer[n] = size >> 24 - 8 * n & 0xFF
    return [answer.getvalue()]


async def finished(context: Context, work: Awaitable[list[Buffer]]) -> list[Buffer] | None:
    """Awaits an answer that takes its time, and returns what to send of it."""
    return context.finish(await work)


def copied(topics: list[tuple[bytes, list[Target]]]) -> list[tuple[bytes, list[Target]]]:
    """Returns the topics with copies of the records: the buffer that they came in is about to be read into."""
    return [
        (key, [(partition, index, memoryview(bytearray(records))) for partition, index, records in targets])
        for key, targets in topics
    ]


async def continued(
    broker: Broker, version: int, acks: int, answer: BytesWriter, topics: list[tuple[bytes, list[Target]]]
) -> list[Buffer]:
    """Appends the rest of a request, one partition after the other, and returns the answer, of which the first topic
    has begun."""
    begun = True
    for key, targets in topics:
        if not begun:
            answer.write(key)
            answer.append(len(targets) + 1)
        begun = False
        for target in targets:
            await append_at_length(broker, key, target, version, acks, answer)
        answer.append(0)
    return ended(answer)


async def append_at_length(
    broker: Broker, key: bytes, target: Target, version: int, acks: int, answer: BytesWriter
) -> None:
    """`append` with as much time as it takes. The topic's rules may change meanwhile; where the partition is gone, or
    has others to wait for by now, nothing is appended, and its client asks anew."""
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
    """Appends to one partition, and writes its part of the answer. Raises TooLong, with nothing done."""
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
    """What is to be appended where, by topic: its name or id as the frame has it. None, or an error, is the unusual."""
    if front[position]:  # a transactional id
        return None
    acks: int = read_i16_be(front, position + 1)
    topic_count = front[position + 7]
    if (acks != ALL and acks != 1) or topic_count > MOST:
        return None
    topics: list[tuple[bytes, list[Target]]] = []
    base, at = 0, position + 8  # `front` is the frame from `base` on
    for _ in range(topic_count - 1):
        start = at
        at += UUID_BYTES if version >= FIRST_TOPIC_ID_VERSION else front[at]
        key = front[start:at]
        partitions = broker.replicas.by_key[key]
        partition_count = front[at]
        if not 1 < partition_count <= MOST:
            return None
        at += 1
        targets: list[Target] = []
        for _ in range(partition_count - 1):
            index: int = read_i32_be(front, at)
            size: int = front[at + 4]
            at += 5
            if size > MOST:
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
    """True where an append waits for other replicas, or the disk."""
    return partition.answers_later and (acks == ALL or partition.flushes)


def refuse(version: int, index: int, error: KafkaError, partition: Partition, answer: BytesWriter) -> None:
    """A partition's answer with its error, as the general way encodes it."""
    parts: list[Buffer] = []
    part_encoder(ProduceResponse, PartitionProduceResponse, version)(refused(index, error, partition), parts.append)
    answer.write(b"".join(parts))

"""Produce without objects: a flexible request (version 9 and later) outside transactions, walked in place.

The way through handlers/produce.py makes a dozen objects per request, which costs more than the append itself.
Source of the layout: protocol/messages/produce.py, whose codec is the oracle.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from broker.produce_rules import refused
from protocol.codec import part_encoder
from protocol.errors import KafkaError
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from protocol.primitives import ONE_BYTE, read_uvarint_tail
from protocol.records.batch import LOG_OVERHEAD, MAGIC_V2, TRANSACTIONAL
from protocol.types import Buffer

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.replica.partition import Partition

FIRST_VERSION: Final = 9
FIRST_TOPIC_ID_VERSION: Final = 13
UUID_BYTES: Final = 16

REQUEST: Final = struct.Struct(">hiB")
"""Acks, timeout, count of topics."""
PARTITION: Final = struct.Struct(">iB")
"""Partition, first byte of the records' length."""
HEAD: Final = struct.Struct(">iixB")
"""Size, correlation id, no tags, count of topics."""
HEAD_AFTER_SIZE: Final = HEAD.size - 4
ANSWER: Final = struct.Struct(">ihqqqBBB")
"""Partition, no error, base offset, append time, log start offset; then no record errors, no message, no tags."""
END: Final = bytes(5)
"""Throttle time, no tags."""

MOST: Final = 0x7F
"""Counts and lengths up to it take one byte; all are one more than what they count (KIP-482)."""
ACKNOWLEDGED: Final = (-1, 1)
BATCH: Final = struct.Struct(">8xi4xB5xB")
"""Of a batch's header its length, its magic and the low byte of its attributes."""
BATCH_HEADER_BYTES: Final = 61


def produce(broker: Broker, version: int, correlation_id: int, frame: memoryview, position: int) -> list[Buffer] | None:
    """The answer to the request whose body is at `position`."""
    try:
        topics = parse(broker, version, frame, position)
    except (IndexError, KeyError, struct.error):
        return None
    if topics is None:
        return None
    now_ms = broker.clock.now_ms()
    parts: list[Buffer] = [b""]
    for key, targets in topics:
        parts += (key, ONE_BYTE[len(targets) + 1])
        for partition, index, records in targets:
            try:
                appended = partition.append(records, now_ms)
            except KafkaError as error:
                refuse(version, index, error, partition, parts)
            else:
                parts.append(ANSWER.pack(index, 0, appended[0], appended[2], appended[3], 1, 0, 0))
        parts.append(ONE_BYTE[0])
    parts.append(END)
    parts[0] = HEAD.pack(sum(map(len, parts)) + HEAD_AFTER_SIZE, correlation_id, len(topics) + 1)
    return [b"".join(parts)]


def parse(
    broker: Broker, version: int, frame: memoryview, position: int
) -> list[tuple[bytes, list[tuple[Partition, int, memoryview]]]] | None:
    """What is to be appended where, by topic: its name or id as the frame has it. None, or an error, is the unusual."""
    if frame[position]:  # a transactional id
        return None
    acks, _, topic_count = REQUEST.unpack_from(frame, position + 1)
    if acks not in ACKNOWLEDGED or topic_count > MOST:
        return None
    position += 1 + REQUEST.size
    topics = []
    for _ in range(topic_count - 1):
        start = position
        position += UUID_BYTES if version >= FIRST_TOPIC_ID_VERSION else frame[position]
        key = bytes(frame[start:position])
        partitions = broker.replicas.by_key[key]
        targets = []
        partition_count = frame[position]
        position += 1
        for _ in range(partition_count - 1):
            index, size = PARTITION.unpack_from(frame, position)
            position += PARTITION.size
            if size > MOST:
                size, position = read_uvarint_tail(frame, position, size)
            end = position + size - 1
            length, magic, attributes = BATCH.unpack_from(frame, position)
            unusual = size <= BATCH_HEADER_BYTES or magic != MAGIC_V2 or attributes & TRANSACTIONAL
            if unusual or length != size - 1 - LOG_OVERHEAD or frame[end]:  # not one batch; tags of the partition
                return None
            partition = partitions[index]
            if partition.log.flushes:
                return None
            targets.append((partition, index, frame[position:end]))
            position = end + 1
        if not 1 < partition_count <= MOST or frame[position]:  # tags of the topic
            return None
        position += 1
        topics.append((key, targets))
    return topics if position + 1 == len(frame) and not frame[position] else None


def refuse(version: int, index: int, error: KafkaError, partition: Partition, parts: list[Buffer]) -> None:
    """A partition's answer with its error, as the general way encodes it."""
    part_encoder(ProduceResponse, PartitionProduceResponse, version)(refused(index, error, partition), parts.append)

"""Parses a Produce in place: flexible versions (9 and later), as nearly every client sends them.

Decoding messages costs more than the append itself. Integers are read from `bytes`, a copy of the parsed parts of the
frame, because compiled code does that without a call. Source of the layout: protocol/messages/produce.py, whose codec
is the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i16_be, read_i32_be

from broker.produce.request import FIRST_TOPIC_ID_VERSION, ParsedProduce, ProducedPartition, ProducedTopic
from protocol.primitives import AS_JAVA, MAX_ONE_BYTE, UUID_BYTES
from protocol.records.batch import (
    AT_ATTRIBUTES,
    AT_LENGTH,
    AT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    TRANSACTIONAL,
)

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker
    from broker.request.context import Context

FIRST_VERSION: Final = 9

BETWEEN_BYTES: Final = 192
"""An upper bound of the bytes between the records of one partition and the batch attributes of the next partition: the
end of a topic, the name of the next topic, counts and lengths."""


MANY_PARTITIONS: Final = 1000
"""More partitions than these are decoded in a thread, and served in turns: some milliseconds."""


def parse(_broker: Broker, context: Context, frame: memoryview, front: bytes, position: int) -> ParsedProduce | None:
    """Returns the request whose body is at `position`. Returns None for an unusual request, which the codec decodes or
    rejects: with tags, long names, many topics, or records that are not exactly one batch."""
    try:
        return parse_body(context.version, frame, front, position)
    except IndexError:
        return None


def parse_body(version: int, frame: memoryview, front: bytes, position: int) -> ParsedProduce | None:
    """Returns the request, or None as `parse` does; raises IndexError for an incomplete request."""
    id_length = front[position]
    if id_length > MAX_ONE_BYTE:
        return None
    at = position + max(id_length, 1)  # null is 0, and as long as the 1 of an empty id
    transactional_id = str(front[position + 1 : at], "utf-8", AS_JAVA) if id_length else None
    acks: int = read_i16_be(front, at)
    timeout_ms: int = read_i32_be(front, at + 2)
    topic_count = front[at + 6]
    if not 1 <= topic_count <= MAX_ONE_BYTE:
        return None
    topics: list[ProducedTopic] = []
    partitions: list[ProducedPartition] = []
    base, at = 0, at + 7  # `front` is the frame from `base` on
    uses_ids = version >= FIRST_TOPIC_ID_VERSION
    for _ in range(topic_count - 1):
        start = at
        key_length = UUID_BYTES if uses_ids else front[at]
        if not 1 <= key_length <= MAX_ONE_BYTE:
            return None
        at += key_length
        topic = ProducedTopic(front[start:at], uses_ids, len(partitions))
        partition_count = front[at]
        topic.end += partition_count - 1
        if not 1 < partition_count <= MAX_ONE_BYTE or topic.end > MANY_PARTITIONS:
            return None
        at += 1
        for _ in range(partition_count - 1):
            index: int = read_i32_be(front, at)
            size: int = front[at + 4]
            at += 5
            if size > MAX_ONE_BYTE:
                size, at = rest_of_size(front, at, size)
            size -= 1
            length: int = read_i32_be(front, at + AT_LENGTH)
            if size < HEADER_SIZE or front[at + AT_MAGIC] != MAGIC_V2 or length != size - LOG_OVERHEAD:
                return None  # not one batch
            is_transactional = front[at + AT_ATTRIBUTES + 1] & TRANSACTIONAL != 0
            begin_at = base + at
            base, at = begin_at + size, 1
            partitions.append(ProducedPartition(topic, index, frame[begin_at:base], is_transactional))
            front = bytes(frame[base : base + BETWEEN_BYTES])
            if front[0]:  # tags of the partition; an error if the records are cut short
                return None
        if front[at]:  # tags of the topic
            return None
        at += 1
        topics.append(topic)
    if base + at + 1 != len(frame) or front[at]:
        return None
    return ParsedProduce(version, transactional_id, acks, timeout_ms, topics, partitions)


def rest_of_size(front: bytes, at: int, first: int) -> tuple[int, int]:
    """Returns the size of the records, whose first byte has the continuation bit, and the position after it; size 0 if
    it is too long. Works like `read_uvarint_tail`, but only on bytes, and so without objects in compiled code."""
    size = first & MAX_ONE_BYTE
    for shift in range(7, 35, 7):
        byte = front[at]
        at += 1
        size |= (byte & MAX_ONE_BYTE) << shift
        if byte <= MAX_ONE_BYTE:
            return size, at
    return 0, at

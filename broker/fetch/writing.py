"""A response of Fetch written integer by integer, for flexible versions, where nothing is told in tags.

Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

from broker.fetch.partition import FetchedPartition
from protocol.connection import JOIN_LIMIT_BYTES
from protocol.types import Buffer

FIRST_VERSION: Final = 12
SIZE_BYTES: Final = 4
MOST: Final = 0x7F
"""Counts and lengths up to it take one byte; all are one more than what they count (KIP-482)."""
NULL: Final = 0
NONE: Final = 1
NO_REPLICA: Final = -1


def written(correlation_id: int, session_id: int, answers: list[FetchedPartition]) -> list[Buffer]:
    """The whole response. Of partitions of one topic that follow each other the topic is named once."""
    head = part = begun(correlation_id, session_id)
    rest: list[Buffer] = []
    write_uvarint(head, topic_count(answers) + 1)
    key: bytes | None = None
    for n, answer in enumerate(answers):
        if key is None or is_another(answer.key, key):
            if key is not None:
                part.append(0)  # no tags
            key = answer.key
            part.write(key)
            write_uvarint(part, partition_count(answers, n) + 1)
        records = answer.records
        size = len(records)
        write_partition(part, answer, size)
        if size:
            if part is not head:
                rest.append(part.getvalue())
            rest.append(records)
            part = BytesWriter()
        part.append(0)  # no tags
    if key is not None:
        part.append(0)
    part.append(0)
    if part is not head:
        rest.append(part.getvalue())
    return finished(head, rest)


def is_another(key: bytes, before: bytes) -> bool:
    """True of the key of another topic; those of one request are mostly one object."""
    return key is not before and key != before


def topic_count(answers: list[FetchedPartition]) -> int:
    """How often the topic is another than before."""
    count = 0
    key: bytes | None = None
    for answer in answers:
        if key is None or is_another(answer.key, key):
            count += 1
            key = answer.key
    return count


def partition_count(answers: list[FetchedPartition], first: int) -> int:
    """How many partitions follow each other in the topic of the first."""
    key = answers[first].key
    end = first + 1
    while end < len(answers) and not is_another(answers[end].key, key):
        end += 1
    return end - first


def begun(correlation_id: int, session_id: int) -> BytesWriter:
    """A response up to its topics, but for the size, which comes last."""
    head = BytesWriter()
    write_i32_be(head, 0)
    write_i32_be(head, correlation_id)
    head.append(0)  # no tags
    write_i32_be(head, 0)  # throttle time
    write_i16_be(head, 0)  # no error
    write_i32_be(head, session_id)
    return head


def write_partition(out: BytesWriter, answer: FetchedPartition, size_bytes: int) -> None:
    """A partition's answer up to its records."""
    write_i32_be(out, answer.index)
    write_i16_be(out, answer.error_code)
    write_i64_be(out, answer.high_watermark)
    write_i64_be(out, answer.last_stable_offset)
    write_i64_be(out, answer.log_start_offset)
    out.append(NULL if answer.aborted is None else NONE)
    write_i32_be(out, NO_REPLICA)
    write_uvarint(out, size_bytes + 1)


def finished(head: BytesWriter, rest: list[Buffer]) -> list[Buffer]:
    """The parts of a response with its size in front; small ones come as one."""
    size = len(head) - SIZE_BYTES
    for part in rest:
        size += len(part)
    for n in range(SIZE_BYTES):
        head[n] = size >> 24 - 8 * n & 0xFF
    parts: list[Buffer] = [head.getvalue(), *rest]
    return [b"".join(parts)] if size <= JOIN_LIMIT_BYTES else parts


def write_uvarint(out: BytesWriter, value: int) -> None:
    while value > MOST:
        out.append(value & MOST | 0x80)
        value >>= 7
    out.append(value)

"""Encodes a Fetch response by hand, integer by integer: flexible versions, without tagged fields.

Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

from broker.fetch.partition import NO_REPLICA, FetchedPartition
from protocol.connection import JOIN_LIMIT_BYTES
from protocol.primitives import MAX_ONE_BYTE
from protocol.types import Buffer

SIZE_BYTES: Final = 4
NULL: Final = 0
NONE: Final = 1


def encoded(correlation_id: int, throttle_ms: int, session_id: int, answers: list[FetchedPartition]) -> list[Buffer]:
    """Returns the frame of the response. Adjacent partitions of a topic share one entry of the topic."""
    head = part = begin_frame(correlation_id, throttle_ms, session_id)
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
    return finish_frame(head, rest)


def is_another(key: bytes, before: bytes) -> bool:
    """True if the keys are of two topics. Equal keys in a request are mostly the same object."""
    return key is not before and key != before


def topic_count(answers: list[FetchedPartition]) -> int:
    """Returns the number of the response's topic entries."""
    count = 0
    key: bytes | None = None
    for answer in answers:
        if key is None or is_another(answer.key, key):
            count += 1
            key = answer.key
    return count


def partition_count(answers: list[FetchedPartition], first: int) -> int:
    """Returns the number of adjacent partitions, from `first` on, with the same topic."""
    key = answers[first].key
    end = first + 1
    while end < len(answers) and not is_another(answers[end].key, key):
        end += 1
    return end - first


def begin_frame(correlation_id: int, throttle_ms: int, session_id: int) -> BytesWriter:
    """Returns the response up to its topics, with a placeholder for the size."""
    head = BytesWriter()
    write_i32_be(head, 0)
    write_i32_be(head, correlation_id)
    head.append(0)  # no tags
    write_i32_be(head, throttle_ms)
    write_i16_be(head, 0)  # no error
    write_i32_be(head, session_id)
    return head


def write_partition(out: BytesWriter, answer: FetchedPartition, size_bytes: int) -> None:
    """Writes a partition's answer up to its records."""
    write_i32_be(out, answer.index)
    write_i16_be(out, answer.error_code)
    write_i64_be(out, answer.high_watermark)
    write_i64_be(out, answer.last_stable_offset)
    write_i64_be(out, answer.log_start_offset)
    out.append(NULL if answer.aborted is None else NONE)
    write_i32_be(out, NO_REPLICA)
    write_uvarint(out, size_bytes + 1)


def finish_frame(head: BytesWriter, rest: list[Buffer]) -> list[Buffer]:
    """Fills in the size, and returns the buffers of the frame: one, if it is small."""
    size = len(head) - SIZE_BYTES
    for part in rest:
        size += len(part)
    for n in range(SIZE_BYTES):
        head[n] = size >> 24 - 8 * n & 0xFF
    if not rest:
        return [head.getvalue()]
    parts: list[Buffer] = [head.getvalue(), *rest]
    return [b"".join(parts)] if size <= JOIN_LIMIT_BYTES else parts


def write_uvarint(out: BytesWriter, value: int) -> None:
    while value > MAX_ONE_BYTE:
        out.append(value & MAX_ONE_BYTE | 0x80)
        value >>= 7
    out.append(value)

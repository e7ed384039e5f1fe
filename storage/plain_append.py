"""The append of nearly all requests: a single v2 batch of a client, a coordinator or a leader, to the active segment.

For such a batch it does the same as `append.prepare`, `ProducerState.check` and `Segment.append`, but on local
variables, without objects and calls. It detects any unusual batch before it changes anything, and leaves that batch to
`Log.append`, which handles or rejects it. The tests check that both ways give the same result.
"""

from __future__ import annotations

import struct
from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be

from protocol.records.batch import (
    AT_ATTRIBUTES,
    AT_BASE_OFFSET,
    AT_BASE_SEQUENCE,
    AT_BASE_TIMESTAMP,
    AT_CRC,
    AT_LAST_OFFSET_DELTA,
    AT_LEADER_EPOCH,
    AT_LENGTH,
    AT_MAGIC,
    AT_MAX_TIMESTAMP,
    AT_PRODUCER_EPOCH,
    AT_PRODUCER_ID,
    AT_RECORDS_COUNT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    MAX_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from protocol.records.checksum import crc32c
from storage.appending.appended import Appended
from storage.appending.records_check import usual
from storage.local_log import LocalLog
from storage.segment.index import MAX_RELATIVE_OFFSET

PLACE: Final = struct.Struct(">qii")
"""Base offset, length and leader epoch, written in one call. The length does not change."""
LAST_CODEC: Final = 4
"""The largest attributes that have only a codec: no marker, no LogAppendTime. A transactional batch is plain too, if it
continues a transaction in this partition."""
UINT32: Final = 0xFFFFFFFF


def append_plain(
    log: LocalLog,
    records: memoryview,
    leader_epoch: int,
    now_ms: int,
    from_client: bool = True,
    from_leader: bool = False,
) -> Appended | None:
    """Returns the offsets of the appended batch; None, with nothing changed, if the batch is unusual. Checks a client's
    records; a leader's batch has its offset and epoch already.

    Raises LogDirFailure, LogDirFull and TooLong as `Log.append` does.
    """
    header = bytes(records[:HEADER_SIZE])
    if len(header) < HEADER_SIZE:
        return None
    # Compiled code reads each field from the bytes without creating an object; unpacking all creates fourteen.
    length: int = read_i32_be(header, AT_LENGTH)
    attributes: int = read_i16_be(header, AT_ATTRIBUTES)
    codec = attributes & ~TRANSACTIONAL
    delta: int = read_i32_be(header, AT_LAST_OFFSET_DELTA)
    timestamp: int = read_i64_be(header, AT_MAX_TIMESTAMP)
    count: int = read_i32_be(header, AT_RECORDS_COUNT)
    crc: int = read_i32_be(header, AT_CRC)
    size = length + LOG_OVERHEAD
    rules, segment = log.rules, log.segments.active
    position, first_timestamp = segment.size_bytes, segment.known_first_timestamp
    offset = log.log_end_offset
    last = offset + delta
    if (
        size != len(records)
        or read_i64_be(header, AT_BASE_OFFSET) != (offset if from_leader else 0)
        or header[AT_MAGIC] != MAGIC_V2
        or not 0 <= codec <= LAST_CODEC
        or not 0 < count == delta + 1
        or size > rules.max_message_bytes
        or timestamp - now_ms > rules.after_ms
        or leader_epoch != log.last_leader_epoch
        or (from_leader and read_i32_be(header, AT_LEADER_EPOCH) != leader_epoch)
        or not position
        or position > rules.segment_bytes - size
        or segment.index_full
        or last - segment.base_offset > MAX_RELATIVE_OFFSET
        or first_timestamp < 0
        or timestamp - first_timestamp > rules.max_segment_ms - segment.roll_jitter_ms
        or crc32c(records[AT_ATTRIBUTES:]) != crc & UINT32
    ):
        return None
    producer, is_transactional = None, attributes != codec
    producer_id: int = read_i64_be(header, AT_PRODUCER_ID)
    sequence: int = read_i32_be(header, AT_BASE_SEQUENCE)
    first: int = read_i64_be(header, AT_BASE_TIMESTAMP)
    if from_client and rules.checked and not usual(records, codec, count, timestamp, first):
        return None
    if producer_id >= 0 or is_transactional:
        epoch: int = read_i16_be(header, AT_PRODUCER_EPOCH)
        producer = log.producer_state.next_in_line(producer_id, epoch, sequence, is_transactional)
        if producer is None:
            return None
    if not from_leader:
        PLACE.pack_into(records, 0, offset, length, leader_epoch)
    try:
        segment.append_one(records, offset, last, timestamp, size)
    except OSError as error:
        raise log.append_failed(segment, error) from error
    log.log_end_offset = log.producer_state.end_offset = last + 1
    if producer is not None:
        producer.add_plain((sequence + delta) & MAX_SEQUENCE, last, delta, timestamp)
    return Appended(offset, last, NO_TIMESTAMP, log.log_start_offset, False)

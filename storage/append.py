"""What makes a producer's bytes fit to be appended: checked, given offsets, converted where the topic asks for it.

Works on the bytes in place and touches no file, so that a refusal leaves no trace. A v2 batch is trusted by its header
once its CRC is right; its records are only looked at where a rule needs them: keys on a compacted topic, timestamps
where the header cannot tell that all are in range, another compression. Kafka classes LogValidator and UnifiedLog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from protocol.errors import ErrorCode, InvalidRecords, KafkaError
from protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE,
    BatchHeader,
    TimestampType,
    build,
    iter_batches,
    magic_at,
    read_header,
    set_max_timestamp,
    stamp,
    validate,
    validate_from_client,
)
from protocol.records.compression import Compression
from protocol.records.record import iter_raw, read_records
from storage.batches import check, walk
from storage.config import MAX_LONG, LogConfig
from storage.producer_entry import Origin

CODECS = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""compression.type; None keeps what the producer chose."""

SHOWN_ERRORS = 3
"""How many of a batch's bad records the error message names; Produce 8 and later list all of them."""


class AppendRules:
    """A topic's config as the append path wants it. `kept`: batches stay as they come, but for their offsets; `plain`:
    and no record of a client ever needs to be looked at."""

    __slots__ = (
        "after_ms",
        "before_ms",
        "codec",
        "compact",
        "kept",
        "level",
        "log_append_time",
        "max_message_bytes",
        "max_segment_ms",
        "plain",
        "segment_bytes",
    )

    def __init__(self, config: LogConfig) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.segment_bytes = config.segment_bytes
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.before_ms = config.message_timestamp_before_max_ms
        self.after_ms = config.message_timestamp_after_max_ms
        self.codec = CODECS[config.compression_type]
        self.level: int | None = getattr(config, f"compression_{config.compression_type}_level", None)
        self.compact = config.compact
        self.max_segment_ms = config.max_segment_ms
        self.kept = not self.log_append_time and self.codec is None and self.before_ms == MAX_LONG
        self.plain = self.kept and not self.compact


class Prepared(NamedTuple):
    """Batches ready to be written: their bytes, and their headers as they will be in the log."""

    buffers: Sequence[memoryview | bytearray]
    batches: Sequence[BatchHeader]
    size_bytes: int
    max_timestamp: int


NOTHING = Prepared((), (), 0, NO_TIMESTAMP)


def prepare(
    records: memoryview, rules: AppendRules, origin: Origin, *, next_offset: int, leader_epoch: int, now_ms: int
) -> Prepared:
    """Check batches or messages of any format, and give them offsets from `next_offset` on.

    `records` is changed in place. Bytes after the last whole batch are left out; NOTHING when there is none. Raises
    KafkaError, or InvalidRecords naming the records at fault.
    """
    if origin is Origin.REPLICATION:
        return _as_given(records, next_offset)
    if not len(records):
        return NOTHING
    if magic_at(records) < MAGIC_V2:
        return _converted(records, rules, next_offset, leader_epoch, now_ms)
    header = read_header(records)
    size = header.batch_length + LOG_OVERHEAD
    if size != len(records):
        return _several(records, rules, origin, next_offset, leader_epoch, now_ms)
    _check_batch(records, 0, header, rules, origin)
    if rules.plain and header.max_timestamp - now_ms <= rules.after_ms and not header.attributes & TIMESTAMP_TYPE:
        stamp(records, 0, next_offset, leader_epoch)
        final = BatchHeader(next_offset, header.batch_length, leader_epoch, *header[3:])
        return Prepared((records,), (final,), size, header.max_timestamp)
    settled, final = _settle(records, 0, header, rules, origin, next_offset, leader_epoch, now_ms)
    return _checked_size(Prepared((settled,), (final,), len(settled), final.max_timestamp), rules)


def _check_batch(records: memoryview, position: int, header: BatchHeader, rules: AppendRules, origin: Origin) -> None:
    """What a batch's header and CRC tell, in the order in which Kafka finds fault."""
    if origin is Origin.CLIENT and header.base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a produced batch's base offset is 0, not {header.base_offset}")
    size = header.batch_length + LOG_OVERHEAD
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)
    validate(records, position, header)
    if origin is Origin.CLIENT:
        validate_from_client(header)
    if size > rules.segment_bytes:
        raise _larger_than_segment(size, rules)


def _several(
    records: memoryview, rules: AppendRules, origin: Origin, next_offset: int, leader_epoch: int, now_ms: int
) -> Prepared:
    """More, or less, than one whole v2 batch. A client may send but one for a partition."""
    found = list(iter_batches(records))
    if origin is Origin.CLIENT and len(found) > 1:
        for position, header in found:
            _check_batch(records, position, header, rules, origin)
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{len(found)} record batches for a partition: one is allowed")
    for position, header in found:
        _check_batch(records, position, header, rules, origin)
    return _all(records, found, rules, origin, next_offset, leader_epoch, now_ms)


def _all(
    records: memoryview,
    found: Sequence[tuple[int, BatchHeader]],
    rules: AppendRules,
    origin: Origin,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> Prepared:
    buffers, headers = [], []
    for position, header in found:
        settled, final = _settle(records, position, header, rules, origin, next_offset, leader_epoch, now_ms)
        buffers.append(settled)
        headers.append(final)
        next_offset = final.next_offset
    maximum = max((header.max_timestamp for header in headers), default=NO_TIMESTAMP)
    return _checked_size(Prepared(buffers, headers, sum(map(len, buffers)), maximum), rules)


def _settle(
    records: memoryview,
    position: int,
    header: BatchHeader,
    rules: AppendRules,
    origin: Origin,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> tuple[memoryview | bytearray, BatchHeader]:
    """One checked batch, with the topic's rules for records applied, and its place in the log: its bytes and header."""
    _check_records(records, position, header, rules, origin, now_ms)
    if rules.codec not in (None, header.attributes & COMPRESSION_MASK) and not header.attributes & CONTROL:
        batch = _recompressed(records, position, header, rules, base_offset, leader_epoch, now_ms)
        return batch, read_header(batch)
    if rules.log_append_time:
        set_max_timestamp(records, position, TimestampType.LOG_APPEND_TIME, now_ms)
    elif header.attributes & TIMESTAMP_TYPE:
        set_max_timestamp(records, position, TimestampType.CREATE_TIME, header.max_timestamp)
    stamp(records, position, base_offset, leader_epoch)
    return records[position : position + header.size_bytes], read_header(records, position)


def _recompressed(
    records: memoryview,
    position: int,
    header: BatchHeader,
    rules: AppendRules,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> bytearray:
    batch = build(
        list(read_records(records, position, header)),
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        compression=rules.codec or Compression.NONE,
        level=rules.level,
        log_append_time_ms=now_ms if rules.log_append_time else None,
    )
    if len(batch) > rules.max_message_bytes:
        raise _too_large(len(batch), rules)
    return batch


def _check_records(
    records: memoryview, position: int, header: BatchHeader, rules: AppendRules, origin: Origin, now_ms: int
) -> None:
    """Refuse a batch for its records' keys or timestamps, if its header leaves that open. Raises InvalidRecords."""
    keys_needed = rules.compact and origin is Origin.CLIENT
    stamped_by_producer = bool(header.attributes & TIMESTAMP_TYPE)
    if rules.log_append_time:
        times_open = stamped_by_producer
    else:
        times_open = rules.before_ms != MAX_LONG or header.max_timestamp - now_ms > rules.after_ms
    if not keys_needed and not times_open:
        return
    code = ErrorCode.INVALID_RECORD
    errors: list[tuple[int, str | None]] = []
    earliest, latest = now_ms - rules.before_ms, now_ms + rules.after_ms
    for index, (offset, timestamp, key_is_null) in enumerate(iter_raw(records, position, header)):
        if keys_needed and key_is_null:
            errors.append((index, "Compacted topic cannot accept message without key"))
        elif rules.log_append_time:
            if stamped_by_producer:
                code = ErrorCode.INVALID_TIMESTAMP
                errors.append((index, "Producer should not set timestamp type to LogAppendTime."))
        elif timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(
                (
                    index,
                    f"Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp should be "
                    f"within [{earliest}, {latest}]",
                )
            )
    if errors:
        raise _refused(code, errors)


def _refused(code: ErrorCode, errors: list[tuple[int, str | None]]) -> InvalidRecords:
    shown = "; ".join(f"record {index}: {message}" for index, message in errors[:SHOWN_ERRORS])
    return InvalidRecords(code, f"{len(errors)} records are refused: {shown}", errors)


def _converted(records: memoryview, rules: AppendRules, next_offset: int, leader_epoch: int, now_ms: int) -> Prepared:
    """Messages of v0 or v1, as v2 batches."""
    from protocol.records.legacy import up_convert

    size = 0
    for _, header in walk(lambda start, end: records[start:end], 0, len(records)):
        if header.magic >= MAGIC_V2:
            raise KafkaError(ErrorCode.INVALID_RECORD, "messages and record batches in one request for a partition")
        if header.size_bytes > rules.max_message_bytes:
            raise _too_large(header.size_bytes, rules)
        size += header.size_bytes
    if not size:
        return NOTHING
    batches = memoryview(up_convert(records[:size], compression=rules.codec, level=rules.level))
    return _all(batches, list(iter_batches(batches)), rules, Origin.CLIENT, next_offset, leader_epoch, now_ms)


def _as_given(records: memoryview, next_offset: int) -> Prepared:
    """A leader's batches, with the offsets and epochs that it gave them."""
    headers, size, expected = [], 0, next_offset
    for position, header in walk(lambda start, end: records[start:end], 0, len(records)):
        check(records, position, header)
        if header.base_offset < expected:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"a replicated batch begins at offset {header.base_offset}, the next offset is {expected}",
            )
        expected = header.next_offset
        headers.append(header)
        size += header.size_bytes
    maximum = max((header.max_timestamp for header in headers), default=NO_TIMESTAMP)
    return Prepared((records[:size],), headers, size, maximum) if headers else NOTHING


def _checked_size(prepared: Prepared, rules: AppendRules) -> Prepared:
    if prepared.size_bytes > rules.segment_bytes:
        raise _larger_than_segment(prepared.size_bytes, rules)
    return prepared


def _too_large(size: int, rules: AppendRules) -> KafkaError:
    limit = rules.max_message_bytes
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {size} bytes: max.message.bytes is {limit}")


def _larger_than_segment(size: int, rules: AppendRules) -> KafkaError:
    limit = rules.segment_bytes
    return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes of batches: segment.bytes is {limit}")

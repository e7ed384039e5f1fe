"""Prepares a producer's bytes for the append: validates them, assigns offsets, and converts them if the topic requires
it.

Changes the bytes in place and touches no file, so that a rejected request leaves no trace. Validates all records of a
client's batch (`records_check.py`), and the headers of other batches. Kafka classes LogValidator and UnifiedLog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchHeader,
    TimestampType,
    iter_batches,
    magic_at,
    read_header,
    set_max_timestamp,
    stamp,
    validate,
    validate_from_client,
)
from protocol.records.building import pack
from protocol.records.codecs import compress
from protocol.records.compression import Compression, TooLarge
from protocol.records.record import LARGEST_RECORD, MAX_INFLATED_SIZE, encode_records, read_records
from protocol.records.walk import MAX_INT, RecordRules
from storage.appending.records_check import LOOP_BYTES, Looked, RecodingTarget, TooLong, look, loop_limit
from storage.config import MAX_LONG, LogConfig
from storage.producers.entry import Origin
from storage.segment.batches import check, walk

CODECS = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""The codec of each compression.type. None keeps the producer's codec."""


NO_RULES = RecordRules(keys=False, unstamped=False, times=False, earliest=0, latest=0)


class AppendRules:
    """A topic's config in the form that the append path uses. `stored_as_sent`: the log changes nothing but the offsets
    of a batch. `plain`: in addition, a client's records need no keys and have no limit."""

    __slots__ = (
        "after_ms",
        "before_ms",
        "checked",
        "codec",
        "compact",
        "largest_record",
        "level",
        "log_append_time",
        "max_message_bytes",
        "max_segment_ms",
        "plain",
        "segment_bytes",
        "stored_as_sent",
    )

    def __init__(self, config: LogConfig) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.largest_record = config.max_decompressed_message_bytes
        self.segment_bytes = config.segment_bytes
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.before_ms = config.message_timestamp_before_max_ms
        self.after_ms = config.message_timestamp_after_max_ms
        self.codec = CODECS[config.compression_type]
        self.level: int | None = getattr(config, f"compression_{config.compression_type}_level", None)
        self.compact = config.compact
        self.checked = config.odradek_records_check
        self.max_segment_ms = config.max_segment_ms
        self.stored_as_sent = not self.log_append_time and self.codec is None and self.before_ms == MAX_LONG
        self.plain = self.stored_as_sent and not self.compact and self.largest_record == LARGEST_RECORD


class Settled(NamedTuple):
    """Batches that are validated and converted, but have no offsets yet, and the rules that were applied."""

    rules: AppendRules
    batches: list[memoryview | bytearray]


class Prepared(NamedTuple):
    """Batches ready to be written: their bytes, and their final headers."""

    buffers: Sequence[memoryview | bytearray]
    batches: Sequence[BatchHeader]
    size_bytes: int
    max_timestamp: int


NOTHING = Prepared((), (), 0, NO_TIMESTAMP)


def prepare(
    records: memoryview,
    rules: AppendRules,
    origin: Origin,
    *,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
    settled: Settled | None = None,
) -> Prepared:
    """Validates batches or messages of any format, and assigns offsets from `next_offset` on.

    Changes `records` in place. Ignores bytes after the last whole batch; returns NOTHING without a whole batch.
    `settled` is the result of `settle` in another thread, which is used if the topic's rules have not changed. Raises
    KafkaError, InvalidRecords, which names the invalid records, or TooLong.
    """
    if origin is Origin.REPLICATION:
        return _as_given(records, next_offset, leader_epoch)
    if settled is None or settled.rules is not rules:
        settled = settle(records, rules, origin, now_ms)
    return _place(settled, next_offset, leader_epoch)


def settle(records: memoryview, rules: AppendRules, origin: Origin, now_ms: int, *, at_length: bool = False) -> Settled:
    """Returns batches or messages as they will be in the log, except for their offsets. Changes only `records`.

    Raises KafkaError, InvalidRecords, and TooLong if the work would block the event loop (not with `at_length`).
    """
    if not len(records):
        return Settled(rules, [])
    if magic_at(records) < MAGIC_V2:
        return _converted(records, rules, now_ms, at_length)
    header = read_header(records)
    if header.size_bytes != len(records):
        return _several(records, rules, origin, now_ms, at_length)
    _check_batch(records, 0, header, rules, origin)
    return _all(records, ((0, header),), rules, origin, now_ms, at_length)


def _place(settled: Settled, next_offset: int, leader_epoch: int) -> Prepared:
    """Assigns the batches' offsets. Raises RECORD_LIST_TOO_LARGE."""
    size = sum(map(len, settled.batches))
    if size > settled.rules.segment_bytes:
        raise _larger_than_segment(size, settled.rules)
    headers = []
    for batch in settled.batches:
        stamp(batch, 0, next_offset, leader_epoch)
        header = read_header(batch)
        headers.append(header)
        next_offset = header.next_offset
    if not headers:
        return NOTHING
    return Prepared(settled.batches, headers, size, max([header.max_timestamp for header in headers]))


def _check_batch(records: memoryview, position: int, header: BatchHeader, rules: AppendRules, origin: Origin) -> None:
    """Checks a batch's header and CRC, in Kafka's order."""
    if origin is Origin.CLIENT and header.base_offset:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"a produced batch's base offset must be 0, not {header.base_offset}"
        )
    size = header.batch_length + LOG_OVERHEAD
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)
    validate(records, position, header)
    if origin is Origin.CLIENT:
        validate_from_client(header)
    if size > rules.segment_bytes:
        raise _larger_than_segment(size, rules)


def _several(records: memoryview, rules: AppendRules, origin: Origin, now_ms: int, at_length: bool) -> Settled:
    """Validates several batches, or an incomplete batch. Rejects several batches of a client, which may send only one
    per partition.
    """
    batches = list(iter_batches(records))
    for position, header in batches:
        _check_batch(records, position, header, rules, origin)
    if origin is Origin.CLIENT and len(batches) > 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"{len(batches)} record batches for a partition; only one is allowed"
        )
    return _all(records, batches, rules, origin, now_ms, at_length)


def _all(
    records: memoryview,
    batches: Sequence[tuple[int, BatchHeader]],
    rules: AppendRules,
    origin: Origin,
    now_ms: int,
    at_length: bool,
) -> Settled:
    return Settled(
        rules,
        [
            _settled(records[position : position + header.size_bytes], header, rules, origin, now_ms, at_length)
            for position, header in batches
        ],
    )


def _settled(
    batch: memoryview, header: BatchHeader, rules: AppendRules, origin: Origin, now_ms: int, at_length: bool
) -> memoryview | bytearray:
    """Applies the topic's rules for records to one checked batch."""
    recoded = rules.codec not in (None, header.attributes & COMPRESSION_MASK) and not header.attributes & CONTROL
    target = RecodingTarget(Compression(rules.codec or 0), rules.level, rules.max_message_bytes) if recoded else None
    if origin is Origin.CLIENT and (rules.checked or recoded or _header_leaves_open(header, rules, now_ms)):
        looked = look(batch, header, _record_rules(header, rules, now_ms), target, at_length=at_length)
        max_timestamp = looked.max_timestamp
    elif recoded:
        looked = look(batch, header, NO_RULES, target, at_length=True)
        max_timestamp = header.max_timestamp
    else:
        looked, max_timestamp = None, header.max_timestamp
    if looked is not None and looked.recoded is not None:
        batch = memoryview(_recoded(batch, header, looked, rules))
    if rules.log_append_time:
        set_max_timestamp(batch, 0, TimestampType.LOG_APPEND_TIME, now_ms)
    elif origin is Origin.CLIENT:
        set_max_timestamp(batch, 0, TimestampType.CREATE_TIME, max_timestamp)
    return batch


def _header_leaves_open(header: BatchHeader, rules: AppendRules, now_ms: int) -> bool:
    """True if a rule of the topic requires a check of the records, even with odradek.records.check off."""
    if rules.compact or header.attributes & TIMESTAMP_TYPE:
        return True
    if rules.largest_record != LARGEST_RECORD and header.attributes & COMPRESSION_MASK:
        return True
    return not rules.log_append_time and (rules.before_ms != MAX_LONG or header.max_timestamp - now_ms > rules.after_ms)


def _record_rules(header: BatchHeader, rules: AppendRules, now_ms: int) -> RecordRules:
    return RecordRules(
        keys=rules.compact,
        unstamped=bool(header.attributes & TIMESTAMP_TYPE),
        times=not rules.log_append_time,
        earliest=now_ms - rules.before_ms,
        latest=now_ms + rules.after_ms,
        largest=rules.largest_record if header.attributes & COMPRESSION_MASK else MAX_INT,
    )


def _recoded(batch: memoryview, header: BatchHeader, looked: Looked, rules: AppendRules) -> bytearray:
    """Returns the batch with its records in the topic's codec. Raises MESSAGE_TOO_LARGE."""
    assert looked.recoded is not None
    if not looked.consecutive:  # only uncompressed records, so decoding them takes no more memory than they have
        recoded = encode_records(read_records(batch, 0, header), range(header.records_count), header.base_timestamp)
        payload = compress(Compression(rules.codec or 0), recoded, rules.level)
    else:
        payload = looked.recoded
    size = HEADER_SIZE + len(payload)
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)
    attributes = header.attributes & (TRANSACTIONAL | TIMESTAMP_TYPE) | Compression(rules.codec or 0)
    return pack(header._replace(attributes=attributes), payload)


def _converted(records: memoryview, rules: AppendRules, now_ms: int, at_length: bool) -> Settled:
    """Converts messages of v0 or v1 to v2 batches."""
    from protocol.records.legacy import up_convert  # a start needs none, and mypyc knows no lazy module

    size = 0
    for _, header in walk(lambda start, end: records[start:end], 0, len(records)):
        if header.magic >= MAGIC_V2:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a request has both messages and record batches for a partition")
        if header.size_bytes > rules.max_message_bytes:
            raise _too_large(header.size_bytes, rules)
        size += header.size_bytes
    if not size:
        return Settled(rules, [])
    if size > LOOP_BYTES and not at_length:
        raise TooLong
    try:
        batch = up_convert(
            records[:size],
            compression=rules.codec,
            level=rules.level,
            max_size=MAX_INFLATED_SIZE if at_length else loop_limit(size),
            largest=rules.largest_record,
        )
    except TooLarge:
        if at_length:
            raise
        raise TooLong from None
    view = memoryview(batch)
    return _all(view, list(iter_batches(view)), rules, Origin.CLIENT, now_ms, at_length)


def _as_given(records: memoryview, next_offset: int, leader_epoch: int) -> Prepared:
    """Returns a leader's batches, with the offsets and epochs that the leader has assigned.

    A late answer of a former leader may contain batches with a newer epoch than that of the follower's fetch. These
    batches and all later batches are left out (KAFKA-18723). With `leader_epoch` -1 all batches are kept.
    """
    headers, size, expected = [], 0, next_offset
    for position, header in walk(lambda start, end: records[start:end], 0, len(records)):
        if 0 <= leader_epoch < header.partition_leader_epoch:
            break
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


def _too_large(size: int, rules: AppendRules) -> KafkaError:
    limit = rules.max_message_bytes
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {size} bytes: max.message.bytes is {limit}")


def _larger_than_segment(size: int, rules: AppendRules) -> KafkaError:
    limit = rules.segment_bytes
    return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes of batches: segment.bytes is {limit}")

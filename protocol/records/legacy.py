"""Between the log's v2 batches and the message sets of clients before 0.11.

Up: org.apache.kafka.storage.internals.log.LogValidator. Down: RecordsUtil and LazyDownConversionRecords of Kafka 3.9,
the last one that served such clients.
"""

from __future__ import annotations

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    TimestampType,
    build,
    iter_batches,
    read_header,
    set_max_timestamp,
)
from protocol.records.compression import Compression
from protocol.records.message_set import Message, encode_message_set, iter_messages, to_record, unwrap
from protocol.records.record import MAX_INFLATED_SIZE, Record, read_records

# What is left of a message whose size says that it goes on: a consumer that gets nothing but this knows that its fetch
# found something which it cannot be shown, and asks for more bytes, or says so (KIP-283).
_OVERFLOW_MESSAGE = (-1).to_bytes(8, "big", signed=True) + (61).to_bytes(4, "big")


def up_convert(
    buffer: Buffer,
    *,
    compression: Compression | None = None,
    level: int | None = None,
    max_size: int = MAX_INFLATED_SIZE,
) -> bytearray:
    """The message set that a client produced as one v2 batch with offsets from 0; empty if there is no whole message.

    `compression` is the topic's, None to keep the producer's. Messages of magic 0 have no timestamp (-1); the mark of
    LogAppendTime, which no producer may set, is kept for the append's checks to find.

    Raises KafkaError: CORRUPT_MESSAGE for wrong CRCs and sizes, INVALID_RECORD for sets that mix magics or break the
    rules of wrappers, INVALID_TIMESTAMP for a negative one.
    """
    outer = list(iter_messages(buffer))
    if not outer:
        return bytearray()
    source = _source_codec(outer)
    messages = outer if not source else unwrap(outer[0], max_size)
    records = [to_record(message) for message in messages]
    if min(record.timestamp for record in records) < NO_TIMESTAMP:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "a record's timestamp is negative")
    batch = build(records, compression=Compression(source) if compression is None else compression, level=level)
    if any(message.timestamp_type for message in outer):
        set_max_timestamp(batch, 0, TimestampType.LOG_APPEND_TIME, read_header(batch).max_timestamp)
    return batch


def _source_codec(outer: list[Message]) -> int:
    magic = outer[0].magic
    for message in outer:
        if message.magic != magic:
            raise _invalid(f"a message of magic {message.magic} in a set that begins with magic {magic}")
    codec = outer[-1].compression
    if any(message.compression != codec for message in outer) or (codec and len(outer) > 1):
        raise _invalid("a compressed message set is one message, and nothing beside it")
    return codec


def down_convert(view: Buffer, to_magic: int, first_offset: int, *, max_size: int = MAX_INFLATED_SIZE) -> bytearray:
    """The whole batches in `view` as message sets of `to_magic` (0 or 1), for a fetch from `first_offset`.

    Offsets stay as they are, gaps included; headers go, and so do control batches. Uncompressed batches lose their
    records below `first_offset`, on which old librdkafkas rely. Where no message is left of what was there, the
    consumer gets an incomplete one, as from Kafka.

    Raises KafkaError(UNSUPPORTED_COMPRESSION_TYPE) when the first batch to convert is zstd, which such clients cannot
    read; a later one ends the conversion, so that the next fetch gets the error.
    """
    converted = bytearray()
    found = False
    for position, header in iter_batches(view):
        found = True
        if header.is_control:
            continue
        if header.compression is Compression.ZSTD:
            if converted:
                break
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd does not exist in message format {to_magic}"
            )
        records = read_records(view, position, header, max_size=max_size)
        kept = [record for record in records if header.compression or record.offset >= first_offset]
        if kept:
            converted += _message_set(kept, header, to_magic)
    return converted if converted or not found else bytearray(_OVERFLOW_MESSAGE)


def _message_set(records: list[Record], header: BatchHeader, to_magic: int) -> bytearray:
    appended = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return encode_message_set(
        records,
        to_magic,
        compression=header.compression,
        log_append_time_ms=header.max_timestamp if appended else None,
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)

"""Converts between the log's v2 batches and the message sets of clients before 0.11.

Up: org.apache.kafka.storage.internals.log.LogValidator. Down: RecordsUtil and LazyDownConversionRecords of Kafka 3.9,
the last version that served such clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    TimestampType,
    iter_batches,
    read_header,
    set_max_timestamp,
)
from protocol.records.building import build, pack
from protocol.records.codecs import stream
from protocol.records.compression import PIECE_BYTES, Compression, TooLarge
from protocol.records.message_set import LegacyMessage, MessageSet, iter_messages, to_record, unwrap
from protocol.records.record import LARGEST_RECORD, MAX_INFLATED_SIZE, Record, encode_body, encode_record
from protocol.records.whole import read_whole

# The start of an incomplete message. A consumer that gets only this knows that the fetch has records that did not fit,
# and fetches more bytes or reports an error (KIP-283).
OVERFLOW_MESSAGE = (-1).to_bytes(8, "big", signed=True) + (61).to_bytes(4, "big")


def up_convert(
    buffer: Buffer,
    *,
    compression: Compression | None = None,
    level: int | None = None,
    max_size: int = MAX_INFLATED_SIZE,
    largest: int = LARGEST_RECORD,
) -> bytearray:
    """Converts a client's message set to one v2 batch with offsets from 0; empty without a whole message.

    `compression` is the topic's codec, or None to keep the producer's. Messages of magic 0 have no timestamp (-1). The
    LogAppendTime attribute, which a producer may not set, is kept, so that the append rejects it.

    Raises KafkaError: CORRUPT_MESSAGE for wrong CRCs and sizes, INVALID_RECORD for sets that mix magics or break the
    rules of wrappers, for damage under a valid CRC and for a message of more than `largest` bytes in a wrapper,
    INVALID_TIMESTAMP for a negative timestamp.
    """
    outer = list(iter_messages(buffer))
    if not outer:
        return bytearray()
    source = _source_codec(outer)
    messages = unwrap(outer[0], max_size, largest) if source else iter(outer)
    codec = source if compression is None else compression
    batch = _batch((to_record(message) for message in messages), codec, level)
    if any(message.timestamp_type for message in outer):
        set_max_timestamp(batch, 0, TimestampType.LOG_APPEND_TIME, read_header(batch).max_timestamp)
    return batch


def _batch(records: Iterator[Record], codec: int, level: int | None) -> bytearray:
    """Returns a batch of the records, each encoded as it is read, because there may be millions. The codec is valid:
    `unwrap` has checked it before the first record."""
    first = next(records)
    recoder = stream(Compression(codec), level)
    encoded, piece = bytearray(), bytearray()
    count, largest = 0, NO_TIMESTAMP
    for record in chain((first,), records):
        if record.timestamp < NO_TIMESTAMP:
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "a record's timestamp is negative")
        piece += encode_record(count, record.timestamp - first.timestamp, encode_body(record))
        largest = max(largest, record.timestamp)
        count += 1
        if len(piece) >= PIECE_BYTES:
            encoded += recoder.write(bytes(piece))
            piece.clear()
    encoded += recoder.write(bytes(piece))
    encoded += recoder.end()
    header = read_header(build([first], compression=Compression(codec)))
    return pack(header._replace(max_timestamp=largest, last_offset_delta=count - 1, records_count=count), encoded)


def _source_codec(outer: list[LegacyMessage]) -> int:
    magic = outer[0].magic
    for message in outer:
        if message.magic != magic:
            raise _invalid(f"a message of magic {message.magic} in a set that begins with magic {magic}")
    codec = outer[-1].compression
    if any(message.compression != codec for message in outer) or (codec and len(outer) > 1):
        raise _invalid("a compressed message set must be a single message")
    return codec


class ConversionBudget:
    """The bytes of messages, before compression, that a conversion may still create."""

    __slots__ = ("converted", "left")

    def __init__(self, left: int = MAX_INFLATED_SIZE) -> None:
        self.left = left
        self.converted = 0
        """Number of records in the converted batches."""


def down_convert(view: Buffer, to_magic: int, first_offset: int, budget: ConversionBudget | None = None) -> bytearray:
    """Converts the whole batches in `view` to message sets of `to_magic` (0 or 1), for a fetch from `first_offset`.

    Keeps offsets and their gaps; drops headers and control batches. Uncompressed batches lose their records below
    `first_offset`, on which old versions of librdkafka rely. If no message remains, the consumer gets an incomplete
    message, as from Kafka. The conversion ends before a batch that exceeds the budget.

    Raises KafkaError(UNSUPPORTED_COMPRESSION_TYPE) if the first batch to convert uses zstd, which such clients cannot
    read, and TooLarge if the first batch exceeds the budget. A later such batch ends the conversion, so that the next
    fetch gets the error.
    """
    budget = ConversionBudget() if budget is None else budget
    converted = bytearray()
    any_batch = False
    for position, header in iter_batches(view):
        any_batch = True
        if header.is_control:
            continue
        try:
            converted += _message_set(view, position, header, to_magic, first_offset, budget)
            budget.converted += header.records_count
        except (UnsupportedCodec, TooLarge):
            if converted:
                break
            raise
    return converted if converted or not any_batch else bytearray(OVERFLOW_MESSAGE)


class UnsupportedCodec(KafkaError):
    """A batch with a codec that the old message format does not have."""


def _message_set(
    view: Buffer, position: int, header: BatchHeader, to_magic: int, first_offset: int, budget: ConversionBudget
) -> bytearray:
    if header.compression is Compression.ZSTD:
        message = f"zstd does not exist in message format {to_magic}"
        raise UnsupportedCodec(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
    records = read_whole(view, position, header, max_size=budget.left)
    appended = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    messages = MessageSet(to_magic, header.compression, header.max_timestamp if appended else None, budget.left)
    for record in records:
        if header.compression or record.offset >= first_offset:
            messages.add(record)
    budget.left -= messages.size_bytes
    return messages.end()


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)

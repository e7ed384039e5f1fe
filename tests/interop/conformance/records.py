"""Describes record batches and old message sets in words, to compare two brokers' and print differences."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.errors import KafkaError
from protocol.records.batch import AT_MAGIC, LOG_OVERHEAD, MAGIC_V2, Buffer, iter_batches
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.message_set import iter_messages, read_messages
from protocol.records.record import Record, read_records

OLD_MS = 1_500_000_000_000
"""The timestamp of the scripts' records, unless a test is about time."""

OF_COMPRESSION = frozenset({"batch_length", "crc", "key", "value"})
"""The fields that depend on the result of a compressor."""


def records(count: int = 1, *, key: bytes | None = b"k", size: int = 10, timestamp: int = OLD_MS) -> list[Record]:
    return [Record(timestamp=timestamp + index, key=key, value=b"v" * size) for index in range(count)]


def batch(count: int = 1, *, compression: Compression = Compression.NONE, **fields: int) -> bytes:
    """Returns a batch of `count` plain records, with these header fields."""
    return bytes(build(records(count), compression=compression, **fields))  # type: ignore[arg-type]


def describe_records(buffer: Buffer) -> list[str]:
    """Returns a line for each batch or message, and for each record in it."""
    view = memoryview(buffer)
    if not len(view):
        return []
    is_old = len(view) > AT_MAGIC and view[AT_MAGIC] != MAGIC_V2
    try:
        return list(messages(view) if is_old else batches(view))
    except KafkaError as error:
        return [error.code.name]


def batches(view: memoryview) -> Iterator[str]:
    end = 0
    for position, header in iter_batches(view):
        yield shown(header._asdict())
        try:
            yield from map(str, read_records(view, position, header))
        except KafkaError as error:
            yield error.code.name
        end = position + header.size_bytes
    if end < len(view):
        yield "and a part of a batch"


def messages(view: memoryview) -> Iterator[str]:
    """Describes messages. Apache Kafka adds an incomplete message if it has promised more bytes; it only counts if it
    is alone."""
    size = 0
    for message in iter_messages(view):
        yield shown(message._asdict())
        end = size + LOG_OVERHEAD + int.from_bytes(view[size + 8 : size + LOG_OVERHEAD], "big")
        yield from map(str, read_messages(view[size:end]))
        size = end
    if not size:
        yield "a part of a message"


def shown(fields: dict[str, object]) -> str:
    return str({name: value for name, value in fields.items() if name not in OF_COMPRESSION})

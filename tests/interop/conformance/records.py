"""Record batches in words, so that two brokers' can be compared and a difference can be read."""

from __future__ import annotations

from protocol.errors import KafkaError
from protocol.records.batch import LOG_OVERHEAD, MAGIC_V2, Buffer, build, iter_batches
from protocol.records.compression import Compression
from protocol.records.record import Record, read_records

OLD_MS = 1_500_000_000_000
"""When the scripts' records were made, unless a test is about time."""


def records(count: int = 1, *, key: bytes | None = b"k", size: int = 10, timestamp: int = OLD_MS) -> list[Record]:
    return [Record(timestamp=timestamp + index, key=key, value=b"v" * size) for index in range(count)]


def batch(count: int = 1, *, compression: Compression = Compression.NONE, **fields: int) -> bytes:
    """A batch of `count` plain records, with header fields of choice."""
    return bytes(build(records(count), compression=compression, **fields))  # type: ignore[arg-type]


def describe_records(buffer: Buffer) -> list[str]:
    """A line for each batch and each record. Compressed sizes and checksums over a clock's times are left out."""
    view = memoryview(buffer)
    if not len(view) or (len(view) > LOG_OVERHEAD + 4 and view[16] != MAGIC_V2):
        return [bytes(view).hex()] if len(view) else []
    lines, end = [], 0
    for position, header in iter_batches(view):
        lines.append(
            str({name: value for name, value in header._asdict().items() if name not in ("batch_length", "crc")})
        )
        try:
            lines += map(str, read_records(view, position, header))
        except KafkaError as error:
            lines.append(error.code.name)
        end = position + header.size_bytes
    if end < len(view):
        lines.append("and a part of a batch")
    return lines

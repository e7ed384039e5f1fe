"""Record batches: valid batches of every codec, and batches with invalid contents, with a valid CRC or without."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from protocol.records import batch
from protocol.records.batch import (
    AT_ATTRIBUTES,
    AT_BASE_SEQUENCE,
    AT_LAST_OFFSET_DELTA,
    AT_LENGTH,
    AT_MAGIC,
    AT_MAX_TIMESTAMP,
    AT_PRODUCER_EPOCH,
    AT_PRODUCER_ID,
    AT_RECORDS_COUNT,
    HEADER_SIZE,
    LOG_OVERHEAD,
)
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.legacy import down_convert
from protocol.records.record import Record
from tests.fuzz.vocabulary import Transactional

MADE_MS: Final = 1_500_000_000_000
LIES: Final[tuple[tuple[int, str, tuple[int, ...]], ...]] = (
    (AT_RECORDS_COUNT, ">i", (0, -1, 1, 1000, (1 << 31) - 1)),
    (AT_LAST_OFFSET_DELTA, ">i", (0, -1, 1000, (1 << 31) - 1)),
    (AT_ATTRIBUTES, ">h", (0x20, 0x30, 0x07, 0x05, 0x08, 0x40, -1)),
    (AT_MAX_TIMESTAMP, ">q", (-1, 0, -(1 << 63), (1 << 63) - 1)),
    (AT_MAX_TIMESTAMP - 8, ">q", (-1, -(1 << 63), (1 << 63) - 1)),
    (AT_PRODUCER_ID, ">q", (0, 1, -2, 1 << 50)),
    (AT_PRODUCER_EPOCH, ">h", (0, -2, 32767)),
    (AT_BASE_SEQUENCE, ">i", (0, -2, (1 << 31) - 1)),
    (AT_LENGTH, ">i", (0, -1, 49, 48, 1 << 20, (1 << 31) - 1)),
    (AT_MAGIC, ">b", (0, 1, 3, -1)),
    (HEADER_SIZE, ">B", (0, 1, 127, 128, 255)),
    (HEADER_SIZE + 3, ">B", (1, 127, 255)),
)


def records(count: int, key: bytes | None = b"k") -> list[Record]:
    return [Record(timestamp=MADE_MS + index, key=key, value=b"value %d" % index) for index in range(count)]


def batches(transactionals: list[Transactional]) -> list[bytes]:
    """Returns the same number of batches, in the same order, for any producer ids."""
    return [*good(), *of_producers(transactionals), *told_lies(), *noise()]


def good() -> Iterator[bytes]:
    for codec in Compression:
        yield bytes(build(records(3), compression=codec))
    yield bytes(build(records(1, None)))
    yield bytes(build([Record(timestamp=MADE_MS, key=b"k", value=None)]))
    whole = bytes(build(records(3)))
    yield whole + whole
    for magic in (0, 1):
        yield bytes(down_convert(memoryview(whole), magic, 0))


def of_producers(transactionals: list[Transactional]) -> Iterator[bytes]:
    for one in transactionals:
        for sequence in (0, 3, 7):
            whole = build(records(3))
            struct.pack_into(">qhi", whole, AT_PRODUCER_ID, one.producer_id, one.epoch, sequence)
            yield sealed(whole)
            struct.pack_into(">h", whole, AT_ATTRIBUTES, 0x10)
            yield sealed(whole)


def told_lies() -> Iterator[bytes]:
    for codec in (Compression.NONE, Compression.GZIP):
        for place, layout, values in LIES:
            for value in values:
                whole = build(records(3), compression=codec)
                struct.pack_into(layout, whole, place, value)
                yield sealed(whole) if place >= AT_ATTRIBUTES else bytes(whole)
    whole = build(records(3))
    yield sealed(whole[:-1] + b"\xff")
    yield sealed(whole[:-2])
    yield sealed(whole + b"behind")
    yield sealed(build(records(3), compression=Compression.LZ4)[:-8])


def noise() -> Iterator[bytes]:
    whole = bytes(build(records(3)))
    yield b""
    yield whole[:20]
    yield whole[:-1]
    yield whole + whole[:30]
    yield whole[:30] + b"\xff" + whole[31:]
    yield bytes(100)
    yield b"\xff" * 100


def sealed(whole: bytearray) -> bytes:
    """Returns the batch with its real length, and the CRC of its content."""
    data = bytearray(whole)
    batch.seal(data, 0, len(data) - LOG_OVERHEAD)
    return bytes(data)

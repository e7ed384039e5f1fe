"""Tests every decoder of records with arbitrary bytes: it returns values or raises KafkaError or ProtocolError, and
memory stays bounded."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import KafkaError, ProtocolError
from protocol.records import control
from protocol.records.batch import LOG_OVERHEAD, Buffer, iter_batches, read_header, seal, validate, validate_from_client
from protocol.records.codecs import decompress
from protocol.records.compression import Compression
from protocol.records.legacy import ConversionBudget, down_convert, up_convert
from protocol.records.message_set import read_messages
from protocol.records.record import Record, iter_keys, read_records
from protocol.records.whole import iter_whole_times, read_whole

KIB = 1024
MAX_SIZE = 256 * KIB
CORPUS = [
    bytes.fromhex(line.split()[1])
    for line in (Path(__file__).parent / "written_by_kafka.txt").read_text().splitlines()
    if not line.startswith("#")
]

# Compressed payloads and header fields that a checksum protects are only reached with the checksum made right again.
MUTATIONS = 400
SEEDS = range(20)


def read_v2(data: Buffer) -> None:
    header = read_header(data)
    for read in (read_records, read_whole, iter_whole_times, iter_keys):
        list(read(data, 0, header, max_size=MAX_SIZE))


def check_v2(data: Buffer) -> None:
    header = read_header(data)
    validate(data, 0, header)
    validate_from_client(header)


def read_control(data: Buffer) -> None:
    for position, header in iter_batches(data):
        for record in read_records(data, position, header, max_size=MAX_SIZE):
            control.decode_marker(record)
            control.decode_quorum_record(record)


DECODERS: dict[str, Callable[[Buffer], object]] = {
    "v2 records": read_v2,
    "v2 header": check_v2,
    "control": read_control,
    "batches": lambda data: list(iter_batches(data)),
    "message set": lambda data: list(read_messages(data, max_size=MAX_SIZE)),
    "up": lambda data: up_convert(data, max_size=MAX_SIZE),
    "down to 0": lambda data: down_convert(data, 0, 0, ConversionBudget(MAX_SIZE)),
    "down to 1": lambda data: down_convert(data, 1, 101, ConversionBudget(MAX_SIZE)),
    "gzip": lambda data: decompress(Compression.GZIP, bytes(data), max_size=MAX_SIZE),
    "snappy": lambda data: decompress(Compression.SNAPPY, bytes(data), max_size=MAX_SIZE),
    "lz4": lambda data: decompress(Compression.LZ4, bytes(data), max_size=MAX_SIZE),
    "lz4 of magic 0": lambda data: decompress(Compression.LZ4, bytes(data), max_size=MAX_SIZE, magic=0),
    "zstd": lambda data: decompress(Compression.ZSTD, bytes(data), max_size=MAX_SIZE),
    "marker": lambda data: control.decode_marker(Record(key=bytes(data[:4]), value=bytes(data[4:]))),
}
every_decoder = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)


def survives(decoder: Callable[[Buffer], object], data: Buffer) -> None:
    with suppress(KafkaError, ProtocolError):
        decoder(data)


def mutated(seed: int) -> Iterator[bytearray]:
    """Yields files that Kafka wrote, with some bytes changed, removed, doubled or joined with bytes of other files."""
    chance = random.Random(seed)
    for _ in range(MUTATIONS):
        data = bytearray(chance.choice(CORPUS))
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        if chance.random() < 0.2:
            at = chance.randrange(len(data) + 1)
            data[at:at] = chance.choice(CORPUS)[: chance.randrange(100)]
        yield data


def with_right_checksums(data: bytearray) -> bytearray:
    if len(data) > 61 and data[16] == 2:
        data[8:12] = (len(data) - LOG_OVERHEAD).to_bytes(4, "big")
        seal(data, 0, len(data) - LOG_OVERHEAD)
    elif len(data) > 26:
        data[8:12] = (len(data) - LOG_OVERHEAD).to_bytes(4, "big")
        data[12:16] = crc32(data[16:]).to_bytes(4, "big")
    return data


@every_decoder
@given(data=st.binary(max_size=300))
def test_random_bytes(decoder: Callable[[Buffer], object], data: bytes) -> None:
    survives(decoder, data)


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_bytes(seed: int) -> None:
    decoders = list(DECODERS.values())
    for data in mutated(seed):
        for decoder in decoders:
            survives(decoder, data)


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_bytes_with_right_checksums(seed: int) -> None:
    decoders = [DECODERS[name] for name in ("v2 records", "v2 header", "control", "message set", "up", "down to 1")]
    for data in mutated(1000 + seed):
        sealed = with_right_checksums(data)
        for decoder in decoders:
            survives(decoder, sealed)


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_compressed_data(seed: int) -> None:
    magics = (b"\x1f\x8b", b"\x82SNAPPY", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")
    decoders = [DECODERS[name] for name in ("gzip", "snappy", "lz4", "lz4 of magic 0", "zstd")]
    for data in mutated(2000 + seed):
        starts = [start for start in map(data.find, magics) if start >= 0]
        for start in starts[:1]:
            for decoder in decoders:
                survives(decoder, data[start:])


def test_memory_is_bounded() -> None:
    decoders = list(DECODERS.values())
    tracemalloc.start()
    try:
        for data in mutated(3000):
            for decoder in decoders:
                survives(decoder, with_right_checksums(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # the inflated bytes, and values of about as much again
    assert peak < 8 * MAX_SIZE

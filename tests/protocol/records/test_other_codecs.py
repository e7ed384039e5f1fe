"""Tests against the record codecs of kafka-python, aiokafka and kio: we read their output, and they read ours."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import aiokafka.record.default_records
import aiokafka.record.legacy_records
import aiokafka.record.memory_records
import kafka.record.memory_records
import kio.records.readers
import kio.records.schema
import kio.records.writers
import pytest

from protocol.records.batch import Buffer, read_header, validate, validate_from_client
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.legacy import up_convert
from protocol.records.message_set import encode_message_set, read_messages
from protocol.records.record import Record, read_records

RECORDS = [
    Record(0, 1700000000000, b"key", b"value", (("h", b"1"), ("h", b""), ("naïve", b"\xff"))),
    Record(1, 1700000000999, None, b"x" * 5000),
    Record(2, 1699999999999, b"", None),
    Record(3, 1700000000001, b"k" * 300, b"", (("null", None),)),
]
PLAIN = [record._replace(headers=()) for record in RECORDS]

every_codec = pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name)
legacy = pytest.mark.parametrize(
    ("magic", "codec"),
    [(magic, codec) for magic in (0, 1) for codec in tuple(Compression)[:4] if (magic, codec) != (0, Compression.LZ4)],
)
"""LZ4 of magic 0 is compared with Kafka's own bytes instead, because the Python clients support it only with another
package."""

READERS = {
    "kafka-python": kafka.record.memory_records.MemoryRecords,
    "aiokafka": aiokafka.record.memory_records.MemoryRecords,
}
every_reader = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)


def read_by(reader: Any, data: Buffer) -> list[Record]:
    memory = reader(bytes(data))
    records = []
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.validate_crc()
        records += [
            Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)) for record in batch
        ]
    return records


def timestamps_of(magic: int, records: list[Record]) -> list[Record]:
    return records if magic else [record._replace(timestamp=None) for record in records]  # type: ignore[arg-type]


def ours(batch: Buffer) -> list[Record]:
    header = read_header(batch)
    validate(batch, 0, header)
    validate_from_client(header)
    return list(read_records(batch, 0, header))


@every_codec
@every_reader
def test_they_read_our_batches(reader: Any, codec: Compression) -> None:
    batch = build(RECORDS, compression=codec, producer_id=3, producer_epoch=1, base_sequence=0)
    assert read_by(reader, batch) == RECORDS


@legacy
@every_reader
def test_they_read_our_message_sets(reader: Any, magic: int, codec: Compression) -> None:
    message_set = encode_message_set(PLAIN, magic, compression=codec)
    assert read_by(reader, message_set) == timestamps_of(magic, PLAIN)


@every_codec
def test_we_read_kafka_python_s_batches(codec: Compression) -> None:
    builder = kafka.record.memory_records.MemoryRecordsBuilder(
        2, codec, 1 << 20, transactional=True, producer_id=7, producer_epoch=1, base_sequence=4
    )
    for record in RECORDS:
        builder.append(record.timestamp, record.key, record.value, list(record.headers))
    builder.close()
    batch = builder.buffer()
    assert ours(batch) == RECORDS
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 4)
    assert header.is_transactional
    assert header.compression is codec


@every_codec
def test_we_read_aiokafka_s_batches(codec: Compression) -> None:
    builder = aiokafka.record.default_records.DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for record in RECORDS:
        assert builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    assert ours(bytes(builder.build())) == RECORDS


@legacy
def test_we_read_kafka_python_s_message_sets(magic: int, codec: Compression) -> None:
    builder = kafka.record.memory_records.MemoryRecordsBuilder(magic, codec, 1 << 20)
    for record in PLAIN:
        builder.append(record.timestamp, record.key, record.value)
    builder.close()
    check_message_set(builder.buffer(), magic, codec)


@legacy
def test_we_read_aiokafka_s_message_sets(magic: int, codec: Compression) -> None:
    builder = aiokafka.record.legacy_records.LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for record in PLAIN:
        assert builder.append(record.offset, record.timestamp, record.key, record.value)
    check_message_set(bytes(builder.build()), magic, codec)


def check_message_set(message_set: bytes, magic: int, codec: Compression) -> None:
    expected = PLAIN if magic else [record._replace(timestamp=-1) for record in PLAIN]
    assert list(read_messages(message_set)) == expected
    batch = up_convert(message_set)
    assert ours(batch) == expected
    assert read_header(batch).compression is codec
    if not codec:
        assert encode_message_set(PLAIN, magic) == message_set


WHOLE_SECONDS = [
    Record(0, 1700000002000, b"key", b"value", (("h", b"1"), ("n", None))),
    Record(1, 1700000001000, None, None),
]
"""kio stores timestamps in seconds, and doesn't support compression."""


def as_kio_has_it(record: Record) -> kio.records.schema.Record:
    return kio.records.schema.Record(
        attributes=0,  # type: ignore[arg-type]
        timestamp=datetime.fromtimestamp(record.timestamp / 1000, UTC),  # type: ignore[arg-type]
        offset=record.offset,  # type: ignore[arg-type]
        key=record.key,
        value=record.value,
        headers=tuple(kio.records.schema.RecordHeader(key=key.encode(), value=value) for key, value in record.headers),
    )


def test_kio_reads_our_batches() -> None:
    ours = bytes(build(WHOLE_SECONDS))
    batch, size = kio.records.readers.read_batch(ours, 0)
    assert list(batch.records) == [as_kio_has_it(record) for record in WHOLE_SECONDS]
    assert size == len(ours)


def test_kio_writes_the_same_batches() -> None:
    written = io.BytesIO()
    new = kio.records.schema.NewRecordBatch(
        producer_id=3,  # type: ignore[arg-type]
        producer_epoch=1,  # type: ignore[arg-type]
        base_sequence=0,  # type: ignore[arg-type]
        attributes=0,  # type: ignore[arg-type]
        records=tuple(as_kio_has_it(record) for record in WHOLE_SECONDS),
    )
    kio.records.writers.write_new_batch(written, new)
    ours = build(WHOLE_SECONDS, producer_id=3, producer_epoch=1, base_sequence=0, partition_leader_epoch=0)
    assert written.getvalue() == ours

"""Compares the bytes of records with those that TransactionLog of Apache Kafka 4.3.1 writes."""

from __future__ import annotations

import pytest

from coordinator.transaction.records import TransactionRecord, TransactionSerde, forgotten, joined, written
from coordinator.transaction.state import State
from coordinator.transaction.transaction import Producer, Transaction
from protocol.errors import ProtocolError
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record, read_records
from protocol.types import TopicPartition
from tests.coordinator.transaction.given import ID, A, transaction

KEY = "000000097472616e7366657273"
EMPTY = transaction(State.EMPTY, Producer(7000, 0))
ONGOING = transaction(State.ONGOING, Producer(7000, 0), updated_ms=1_000_005)
PREPARED = transaction(
    State.PREPARE_COMMIT,
    Producer(5, 32767),
    partitions=frozenset({A, TopicPartition("a", 1)}),
    updated_ms=1_000_005,
    last_epoch=32766,
)
COMPLETE = transaction(
    State.COMPLETE_ABORT, Producer(7000, 0), updated_ms=1_000_005, previous_producer_id=5, last_epoch=32766
)

WRITTEN_BY_KAFKA: list[tuple[int, Transaction, str]] = [
    (0, EMPTY, "00000000000000001b5800000000ea6000ffffffff00000000000f4240ffffffffffffffff"),
    (0, ONGOING, "00000000000000001b5800000000ea600100000001000161000000010000000000000000000f424500000000000f4240"),
    (
        0,
        PREPARED,
        "000000000000000000057fff0000ea60020000000100016100000002000000010000000000000000000f424500000000000f4240",
    ),
    (0, COMPLETE, "00000000000000001b5800000000ea60050000000000000000000f424500000000000f4240"),
    (1, EMPTY, "00010000000000001b5800000000ea60000000000000000f4240ffffffffffffffff0100080000000000001b58"),
    (
        1,
        ONGOING,
        "00010000000000001b5800000000ea600102026102000000000000000000000f424500000000000f42400100080000000000001b58",
    ),
    (
        1,
        PREPARED,
        "000100000000000000057fff0000ea60020202610300000001000000000000000000000f424500000000000f4240"
        "0100080000000000000005",
    ),
    (1, COMPLETE, "00010000000000001b5800000000ea60050100000000000f424500000000000f42400100080000000000000005"),
    (
        2,
        ONGOING._replace(client_version=2),
        "00010000000000001b5800000000ea600102026102000000000000000000000f424500000000000f4240"
        "0200080000000000001b5802020002",
    ),
    (
        2,
        PREPARED._replace(client_version=2, next_producer_id=7000),
        "000100000000000000057fff0000ea60020202610300000001000000000000000000000f424500000000000f4240"
        "030008000000000000000501080000000000001b5802020002",
    ),
    (
        2,
        COMPLETE._replace(client_version=2),
        "00010000000000001b5800000000ea60050100000000000f424500000000000f4240020008000000000000000502020002",
    ),
]
"""transaction.version, transaction, value; without the order of the partitions, which came from a hash table."""


def serde(version: int) -> TransactionSerde:
    return TransactionSerde(lambda: version)


@pytest.mark.parametrize(("version", "transaction", "value"), WRITTEN_BY_KAFKA)
def test_the_bytes_are_those_of_kafka(version: int, transaction: Transaction, value: str) -> None:
    batches = joined(serde(version).encode([written(transaction)], now_ms=77))
    [record] = read_records(batches, 0, batch.read_header(batches))
    assert (record.timestamp, record.key) == (77, bytes.fromhex(KEY))
    assert record.value is not None
    assert len(record.value) == len(bytes.fromhex(value))
    assert sorted(record.value) == sorted(bytes.fromhex(value))


@pytest.mark.parametrize(("version", "transaction", "value"), WRITTEN_BY_KAFKA)
def test_what_kafka_wrote_is_read(version: int, transaction: Transaction, value: str) -> None:
    batches = build([batch_record(bytes.fromhex(value))])
    decoded = transaction._replace(last_epoch=-1)
    if version == 0:
        decoded = decoded._replace(previous_producer_id=-1)
    assert list(serde(version).decode(batches)) == [TransactionRecord(ID, decoded)]


def batch_record(value: bytes | None, key: str = KEY) -> Record:
    return Record(0, 0, bytes.fromhex(key), value)


def test_an_expired_id_is_a_tombstone() -> None:
    batches = joined(serde(2).encode([forgotten(ID)], now_ms=77))
    [record] = read_records(batches, 0, batch.read_header(batches))
    assert (record.key, record.value) == (bytes.fromhex(KEY), None)
    assert list(serde(2).decode(batches)) == [forgotten(ID)]


def test_an_outcome_is_one_batch() -> None:
    encoded = serde(2).encode([written(EMPTY), forgotten("other")], now_ms=77)
    batches = joined(encoded)
    assert sum(batch.size_bytes for batch in encoded) > 0
    assert [header.records_count for _, header in batch.iter_batches(batches)] == [2]


def test_records_of_a_later_kafka_are_passed_over() -> None:
    batches = build([batch_record(b"whatever", key="0009"), batch_record(None)])
    assert list(serde(2).decode(batches)) == [forgotten(ID)]


def test_a_state_that_does_not_exist_is_an_error() -> None:
    value = bytearray.fromhex("00000000000000001b5800000000ea6009ffffffff00000000000f4240ffffffffffffffff")
    with pytest.raises(ProtocolError, match="status 9"):
        list(serde(2).decode(build([batch_record(bytes(value))])))

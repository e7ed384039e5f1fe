"""The records of `__transaction_state`: a transactional id, and its transaction or a tombstone.

Keys and values are those of Apache Kafka 4.3: value version 0, or from transaction.version 1 on the flexible version 1.
Source: org.apache.kafka.coordinator.transaction.TransactionLog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from coordinator.transaction.state import BY_NUMBER, State
from coordinator.transaction.transaction import Transaction
from protocol.coordinator_records import TRANSACTION_STATE, Decoded, decode_record, encode_key, encode_value
from protocol.coordinator_records.transaction import PartitionsSchema, TransactionLogKey, TransactionLogValue
from protocol.errors import ProtocolError
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record, read_records
from protocol.types import Buffer, TopicPartition

FLEXIBLE_SINCE: Final = 1
"""The transaction.version from which on values have version 1, with the previous and next producer ids."""


class TransactionRecord(NamedTuple):
    """The current transaction of a transactional id; None deletes the id."""

    transactional_id: str
    transaction: Transaction | None


def written(transaction: Transaction) -> TransactionRecord:
    """Returns the record that makes the transaction the id's current one."""
    return TransactionRecord(transaction.transactional_id, transaction)


def forgotten(transactional_id: str) -> TransactionRecord:
    """Returns the tombstone of an expired id."""
    return TransactionRecord(transactional_id, None)


class Batch(NamedTuple):
    """The records of an outcome, ready to be appended."""

    data: bytearray

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    @property
    def at_once(self) -> bool:
        """Always True: a transaction's records are not gathered with others."""
        return True


def joined(encoded: Sequence[Batch]) -> bytearray:
    """Returns the bytes of encoded batches."""
    return bytearray().join(batch.data for batch in encoded)


class TransactionSerde:
    """Encodes and decodes these records: one batch for an outcome, so that it is written as a whole."""

    def __init__(self, transaction_version: Callable[[], int]) -> None:
        self._transaction_version = transaction_version

    def encode(self, records: Sequence[TransactionRecord], now_ms: int) -> list[Batch]:
        """Returns one batch with all of the records."""
        version = 1 if self._transaction_version() >= FLEXIBLE_SINCE else 0
        return [Batch(build([_log_record(record, version, now_ms) for record in records]))]

    def decode(self, batches: Buffer) -> Iterator[TransactionRecord]:
        """Yields the records of whole batches; skips record types of later Kafka versions. Raises ProtocolError,
        KafkaError."""
        for position, header in batch.iter_batches(batches):
            if header.is_control:
                continue
            for record in read_records(batches, position, header):
                decoded = decode_record(TRANSACTION_STATE, record.key or b"", record.value)
                if decoded is not None:
                    yield _from_decoded(decoded)


def _log_record(record: TransactionRecord, version: int, now_ms: int) -> Record:
    key = encode_key(TransactionLogKey(transactional_id=record.transactional_id))
    if record.transaction is None:
        return Record(timestamp=now_ms, key=key, value=None)
    return Record(timestamp=now_ms, key=key, value=encode_value(_value(record.transaction, version), version))


def _value(transaction: Transaction, version: int) -> TransactionLogValue:
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_partitions=None if transaction.state is State.EMPTY else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
    )
    if version >= 1:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return value


def _by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]


def _from_decoded(decoded: Decoded) -> TransactionRecord:
    key, value = decoded
    assert isinstance(key, TransactionLogKey)
    if value is None:
        return forgotten(key.transactional_id)
    assert isinstance(value, TransactionLogValue)
    return written(_transaction(key.transactional_id, value))


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    state = BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise ProtocolError(f"{transactional_id}: no transaction has the status {value.transaction_status}")
    topics = () if state is State.EMPTY else value.transaction_partitions or ()
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        value.transaction_last_update_timestamp_ms,
        partitions=frozenset(TopicPartition(topic.topic, index) for topic in topics for index in topic.partition_ids),
        started_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )

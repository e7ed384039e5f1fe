"""The checks of Produce before an append, and its error messages, which are Apache Kafka's word for word.

Clients show these messages to their users, and act on the codes. Source: ProduceRequest.validateRecords,
ByteBufferLogInputStream, ReplicaManager.appendToLocalLog, LogValidator.processRecordErrors.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeGuard

from protocol.errors import ErrorCode, InvalidRecords, KafkaError
from protocol.messages.produce import BatchIndexAndErrorMessage
from protocol.records.batch import AT_MAGIC, COMPRESSION_MASK, HEADER_SIZE, LOG_OVERHEAD, MAGIC_V2, TRANSACTIONAL
from protocol.records.compression import Compression
from protocol.records.walk import NO_KEY

if TYPE_CHECKING:
    from broker.replica.partition import Partition

FIRST_BATCH_VERSION: Final = 3
"""The first version with exactly one v2 batch for each partition."""

FIRST_ZSTD_VERSION: Final = 7
ATTRIBUTES_LOW_BYTE = 22
"""The position of a v2 batch's codec."""

SIZE = struct.Struct(">i")
SIZE_AT = 8
MIN_ENTRY_SIZE = 14
"""The least size of a message of any format (LegacyRecord.RECORD_OVERHEAD_V0)."""

NOTHING = memoryview(b"")
NO_OFFSET: Final = -1
SHOWN_ERRORS = 3
"""The number of invalid records in the message; the response lists all of them."""

WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors of an append that are answered without the log start offset."""


EXPLAINED_ERRORS = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.NOT_ENOUGH_REPLICAS})
"""The coordinator's errors that get a message, because their code alone would mislead."""


class RecordsRejected(KafkaError):
    """Records are rejected before the append; `client_message` is None if the client gets no message."""

    def __init__(self, code: ErrorCode, client_message: str | None = None) -> None:
        super().__init__(code, client_message)
        self.client_message = client_message


def batch_of(version: int, records: memoryview) -> memoryview:
    """Returns the records if a request of this version may contain them. Raises RecordsRejected."""
    end = entry_end(records, 0)
    if version < FIRST_BATCH_VERSION:
        return NOTHING if end is None else records
    if end is None or records[AT_MAGIC] != MAGIC_V2 or entry_end(records, end) is not None:
        raise RecordsRejected(ErrorCode.INVALID_RECORD)
    if version < FIRST_ZSTD_VERSION and records[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK == Compression.ZSTD:
        raise RecordsRejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return records


def is_transactional(records: object) -> TypeGuard[memoryview]:
    """True for a batch that is part of a transaction; invalid batches are left to the append."""
    return (
        isinstance(records, memoryview)
        and len(records) >= HEADER_SIZE
        and records[AT_MAGIC] == MAGIC_V2
        and bool(records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL)
    )


def entry_error(records: object) -> RecordsRejected | None:
    """Returns the error of records that begin with neither a message nor a batch; None for others."""
    try:
        entry_end(records if isinstance(records, memoryview) else NOTHING, 0)
    except RecordsRejected as error:
        return error.detached()
    return None


def not_verified(error: KafkaError) -> RecordsRejected:
    """Returns the error of transactional records that their coordinator didn't verify."""
    return RecordsRejected(error.code, error.message if error.code in EXPLAINED_ERRORS else None)


def entry_end(records: memoryview, start: int) -> int | None:
    """Returns the end of the message or batch at `start`; None if it is incomplete. Raises RecordsRejected."""
    left = len(records) - start
    if left < LOG_OVERHEAD:
        return None
    (size,) = SIZE.unpack_from(records, start + SIZE_AT)
    if size < MIN_ENTRY_SIZE:
        text = f"Record size {size} is less than the minimum record overhead ({MIN_ENTRY_SIZE})"
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, text)
    if left <= AT_MAGIC:
        return None
    magic = records[start + AT_MAGIC]
    if magic > MAGIC_V2:
        signed = magic - 256 if magic > 127 else magic
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {signed}")
    end = start + LOG_OVERHEAD + int(size)
    return end if end <= len(records) else None


def log_start_offset(error: KafkaError, partition: Partition | None) -> int:
    """Returns the log start offset in the answer to rejected records; -1 unless their log rejected them."""
    return NO_OFFSET if partition is None or error.code in WITHOUT_LOG_START else partition.log_start_offset


def record_errors(error: KafkaError, partition: Partition | None) -> list[BatchIndexAndErrorMessage]:
    """Returns the invalid records with their errors; if a key is missing, the message also names the partition."""
    if not isinstance(error, InvalidRecords):
        return []
    location = f" in topic partition {partition.name}" if partition else ""
    return [
        BatchIndexAndErrorMessage(
            batch_index=index, batch_index_error_message=f"{message}{location if message == NO_KEY else ''}"
        )
        for index, message in error.record_errors
    ]


def client_message(error: KafkaError, errors: list[BatchIndexAndErrorMessage]) -> str | None:
    """Returns the message for the client: most errors have only their code."""
    if isinstance(error, RecordsRejected):
        return error.client_message
    if not errors:
        return None
    if error.code is ErrorCode.INVALID_TIMESTAMP:
        return "One or more records have been rejected due to invalid timestamp"
    shown = ", ".join(
        f"RecordError(batchIndex={record.batch_index}, message='{record.batch_index_error_message}')"
        for record in errors[:SHOWN_ERRORS]
    )
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )

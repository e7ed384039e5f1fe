"""Encodes a shard's records into batches of its partition, and decodes them.

Records are encoded one by one as they are decided, and gathered; `batches` packs them into as few batches as
max.message.bytes allows. Offsets of a transaction are in batches of their producer, and its marker in a control batch.
Source: CoordinatorRecordSerde, CoordinatorRuntime (KIP-98).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from coordinator.group.records import NO_PRODUCER_ID, AnyRecord, EndTransaction, GroupRecord
from protocol.codec import MALFORMED
from protocol.coordinator_records import CONSUMER_OFFSETS, decode_record, encode_key, encode_value
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.records import batch
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.control import ControlType, EndTxnMarker, decode_marker, end_txn_batch
from protocol.records.record import Record, read_records
from protocol.tuples import new_tuple
from protocol.types import Buffer

RECORD_OVERHEAD_BYTES: Final = 24
"""Upper bound of the bytes of a record's lengths, deltas and header count in a batch."""


class EncodedRecord:
    """An encoded record, with a producer if it belongs to a transaction; or that producer's marker."""

    __slots__ = ("marker", "producer_epoch", "producer_id", "record", "size_bytes")

    def __init__(
        self, record: Record, producer_id: int, producer_epoch: int, marker: EndTransaction | None = None
    ) -> None:
        self.record = record
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.marker = marker
        self.size_bytes = len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES
        """Maximum number of bytes that the record takes in a batch."""

    @property
    def at_once(self) -> bool:
        """True if the log may reject the record, because its producer may be fenced: it isn't gathered with others."""
        return self.producer_id != NO_PRODUCER_ID

    def goes_with(self, other: EncodedRecord) -> bool:
        """True if both may be in one batch: they are of the same producer or have none, and neither is a marker."""
        return (
            self.producer_id == other.producer_id
            and self.producer_epoch == other.producer_epoch
            and self.marker is None
            and other.marker is None
        )


class GroupSerde:
    """`coordinator.engine.machine.Serde` of `__consumer_offsets`."""

    def __init__(self, max_batch_bytes: Callable[[], int], compression: Callable[[], Compression]) -> None:
        self._max_batch_bytes = max_batch_bytes
        self._compression = compression

    def encode(self, records: Sequence[AnyRecord], now_ms: int) -> list[EncodedRecord]:
        """Returns the encoded records. Raises MESSAGE_TOO_LARGE for a record that fits in no batch,
        UNKNOWN_SERVER_ERROR for a record that can't be encoded."""
        try:
            encoded = [_encode(record, now_ms) for record in records]
        except MALFORMED as error:  # such as a name of 32 KiB, which a request can carry and a record can't
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"a record cannot be written: {error}") from error
        limit = self._max_batch_bytes() - batch.HEADER_SIZE
        for record in encoded:
            if record.size_bytes > limit:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE, f"a record of {record.size_bytes} bytes is over the limit of {limit}"
                )
        return encoded

    def batches(self, encoded: Sequence[EncodedRecord]) -> bytearray:
        """Returns batches with all of the records, in order."""
        result = bytearray()
        for run in self._runs(encoded):
            first = run[0]
            if first.marker is not None:
                result += _marker_batch(first.marker, first.record.timestamp)
                continue
            result += build(
                [record.record for record in run],
                producer_id=first.producer_id,
                producer_epoch=first.producer_epoch,
                transactional=first.producer_id != NO_PRODUCER_ID,
                compression=self._compression(),
            )
        return result

    def _runs(self, encoded: Sequence[EncodedRecord]) -> Iterator[list[EncodedRecord]]:
        """Yields the records of each batch: of one producer or without one, and as many as fit."""
        limit = self._max_batch_bytes() - batch.HEADER_SIZE
        run: list[EncodedRecord] = []
        size = 0
        for record in encoded:
            if run and (size + record.size_bytes > limit or not record.goes_with(run[0])):
                yield run
                run, size = [], 0
            run.append(record)
            size += record.size_bytes
        if run:
            yield run

    def decode(self, batches: Buffer) -> Iterator[AnyRecord]:
        """Yields the records of whole batches, without records of types that this version doesn't support.

        Raises KafkaError CORRUPT_MESSAGE for bytes that are not a record.
        """
        for position, header in batch.iter_batches(batches):
            if header.is_control:
                yield from _markers(read_records(batches, position, header), header)
                continue
            for record in read_records(batches, position, header):
                decoded = _decode(record, header)
                if decoded is not None:
                    yield decoded


def _encode(record: AnyRecord, now_ms: int) -> EncodedRecord:
    if isinstance(record, EndTransaction):
        return EncodedRecord(Record(timestamp=now_ms), record.producer_id, record.producer_epoch, record)
    key, value, version, producer_id, producer_epoch = record
    encoded = None if value is None else encode_value(value, version)
    return EncodedRecord(new_tuple(Record, (0, now_ms, encode_key(key), encoded, ())), producer_id, producer_epoch)


def _marker_batch(marker: EndTransaction, now_ms: int) -> bytearray:
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    content = EndTxnMarker(kind, marker.coordinator_epoch)
    return end_txn_batch(content, marker.producer_id, marker.producer_epoch, now_ms)


def _markers(records: Iterable[Record], header: batch.BatchHeader) -> Iterator[EndTransaction]:
    for record in records:
        marker = decode_marker(record)
        if marker is not None:
            yield EndTransaction(header.producer_id, header.producer_epoch, marker.is_commit, marker.coordinator_epoch)


def _decode(record: Record, header: batch.BatchHeader) -> GroupRecord | None:
    try:
        decoded = decode_record(CONSUMER_OFFSETS, record.key or b"", record.value)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"offset {record.offset}: {error}") from error
    if decoded is None:
        return None
    producer = (header.producer_id, header.producer_epoch) if header.is_transactional else ()
    return GroupRecord(decoded.key, decoded.value, 0, *producer)

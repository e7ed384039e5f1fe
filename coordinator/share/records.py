"""The records of `__share_group_state`: whole states and changes to them, by share partition.

Source: ShareCoordinatorRecordHelpers, ShareCoordinatorRecordSerde (KIP-932, KIP-1226).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from coordinator.engine.result import Result
from coordinator.share.batches import NO_START_OFFSET, StateBatch, combine
from coordinator.share.key import ShareKey
from protocol.coordinator_records import SHARE_GROUP_STATE, decode_record, encode_key, encode_value
from protocol.coordinator_records import share_state as messages
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.records import batch
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record, read_records
from protocol.tuples import new_tuple
from protocol.types import Buffer

VERSION: Final = 0
NOT_YET: Final = -1
"""The offset of a record that isn't written yet."""

KEPT_KEYS: Final = 1024
"""Share partitions whose encoded keys are kept for their next updates."""

RECORD_OVERHEAD_BYTES: Final = 24
"""Upper bound of the bytes of a record's lengths, deltas and header count in a batch."""


class ShareState(NamedTuple):
    """The stored state of a share partition: the content of a ShareSnapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    """The start offset; -1 until the group's reset strategy is applied."""
    delivery_complete_count: int
    created_ms: int
    written_ms: int
    """The time of the last snapshot; later than `created_ms` if it was written because the partition was cold."""
    batches: Sequence[StateBatch] = ()


class Update(NamedTuple):
    """A change since the last snapshot: the content of a ShareUpdate. Start offset -1 keeps the present one."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch] = ()


class ShareRecord(NamedTuple):
    """A record of a share partition: its snapshot, an update, or a tombstone (None)."""

    key: ShareKey
    value: ShareState | Update | None
    offset: int = NOT_YET
    """The offset at which it was read."""


ShareResult: TypeAlias = Result[ShareRecord]


class EncodedShareRecord:
    """An encoded record."""

    __slots__ = ("at_once", "record", "size_bytes")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.size_bytes = len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES
        self.at_once = False


class ShareSerde:
    """`coordinator.engine.machine.Serde` of `__share_group_state`."""

    def __init__(self, compression: Compression) -> None:
        self._compression = compression

    def encode(self, records: Sequence[ShareRecord], now_ms: int) -> list[EncodedShareRecord]:
        return [EncodedShareRecord(_log_record(record, now_ms)) for record in records]

    def batches(self, encoded: Sequence[EncodedShareRecord]) -> bytearray:
        """Returns one batch with all the records."""
        return build([record.record for record in encoded], compression=self._compression)

    def decode(self, batches: Buffer) -> Iterator[ShareRecord]:
        """Yields the records of whole batches. Raises KafkaError CORRUPT_MESSAGE for bytes that are not a record."""
        for position, header in batch.iter_batches(batches):
            if header.is_control:
                continue
            for record in read_records(batches, position, header):
                decoded = _decode(record)
                if decoded is not None:
                    yield decoded


def _log_record(record: ShareRecord, now_ms: int) -> Record:
    if isinstance(record.value, Update):
        value = encode_value(_update(record.value), VERSION)
        return new_tuple(Record, (0, now_ms, _update_key(record.key), value, ()))
    group_id, topic_id, partition = record.key
    key = messages.ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
    encoded = None if record.value is None else encode_value(_snapshot(record.value), VERSION)
    return Record(0, now_ms, encode_key(key), encoded)


@lru_cache(KEPT_KEYS)
def _update_key(key: ShareKey) -> bytes:
    """Returns the encoded key of a share partition's updates."""
    return encode_key(messages.ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition))


def _snapshot(state: ShareState) -> messages.ShareSnapshotValue:
    return messages.ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_to_messages(state.batches),
    )


def _update(update: Update) -> messages.ShareUpdateValue:
    return messages.ShareUpdateValue(
        snapshot_epoch=update.snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=_to_messages(update.batches),
    )


def _to_messages(batches: Iterable[StateBatch]) -> list[messages.StateBatch]:
    return [
        messages.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]


def _from_messages(batches: Iterable[messages.StateBatch]) -> list[StateBatch]:
    return combine(
        (),
        (
            StateBatch(
                state_batch.first_offset,
                state_batch.last_offset,
                state_batch.delivery_state,
                state_batch.delivery_count,
            )
            for state_batch in batches
        ),
        NO_START_OFFSET,
    )


def _decode(record: Record) -> ShareRecord | None:
    try:
        decoded = decode_record(SHARE_GROUP_STATE, record.key or b"", record.value)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"offset {record.offset}: {error}") from error
    if decoded is None:
        return None
    key, value = decoded
    assert isinstance(key, messages.ShareSnapshotKey | messages.ShareUpdateKey)
    share_key = ShareKey(key.group_id, key.topic_id, key.partition)
    return ShareRecord(share_key, _domain(value), record.offset)


def _domain(value: object) -> ShareState | Update | None:
    if isinstance(value, messages.ShareSnapshotValue):
        return ShareState(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            value.create_timestamp,
            value.write_timestamp,
            _from_messages(value.state_batches),
        )
    if isinstance(value, messages.ShareUpdateValue):
        return Update(
            value.snapshot_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            _from_messages(value.state_batches),
        )
    return None

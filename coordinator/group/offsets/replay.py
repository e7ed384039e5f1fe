"""Replays the records of offsets."""

from __future__ import annotations

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.records import EndTransaction, GroupRecord
from coordinator.group.state import Apply, GroupState
from protocol.coordinator_records.offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)


def offset_commit(state: GroupState, record: GroupRecord) -> None:
    """Applies a committed or pending offset, or a tombstone. An offset of a group without members creates a simple
    group."""
    key, value = record.key, record.value
    assert isinstance(key, OffsetCommitKey)
    assert value is None or isinstance(value, OffsetCommitValue)
    if value is not None and key.group not in state.groups:
        state.groups[key.group] = ClassicGroup(key.group)
    state.offsets.apply(key, value, record.producer_id)


def legacy_offset_commit(state: GroupState, record: GroupRecord) -> None:
    """Applies an offset record as Kafka 0.8 wrote it."""
    key, value = record.key, record.value
    assert isinstance(key, LegacyOffsetCommitKey)
    assert value is None or isinstance(value, LegacyOffsetCommitValue)
    renewed = value and OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )
    renewed_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    offset_commit(state, record._replace(key=renewed_key, value=renewed))


def end_transaction(state: GroupState, marker: EndTransaction) -> None:
    """Commits or drops a transaction's offsets."""
    state.offsets.end_transaction(marker)


APPLY: dict[type, Apply] = {
    OffsetCommitKey: offset_commit,
    LegacyOffsetCommitKey: legacy_offset_commit,
    EndTransaction: end_transaction,
}

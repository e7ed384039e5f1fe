"""Tests the table of offsets: committed, pending, of recreated topics, and loaded from a compacted log."""

from __future__ import annotations

import pytest

from coordinator.group.offsets.commit import commit, commit_transactional
from coordinator.group.offsets.delete import GROUPS_AT_ONCE, PAUSE_MS
from coordinator.group.offsets.offsets import Offsets
from coordinator.group.records import EndTransaction, GroupRecord, committed, offset_commit
from coordinator.group.state import Client
from protocol.coordinator_records.offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.types import NO_UUID, TopicPartition
from tests.coordinator.driver import START_MS
from tests.coordinator.group.world import GROUP, SOON_MS, Groups
from tests.group_requests import txn_offset_commit

KEY = OffsetCommitKey(group="g", topic="t", partition=0)
ID, OTHER_ID = b"1" * 16, b"2" * 16


def value(offset: int) -> OffsetCommitValue:
    return committed(offset, 0, "", START_MS)


def stored(offsets: Offsets) -> int | None:
    offset = offsets.get("g", "t", 0)
    return None if offset is None else offset.offset


def test_the_last_offset_counts_and_a_tombstone_takes_it_away() -> None:
    offsets = Offsets()
    offsets.apply(KEY, value(1))
    offsets.apply(KEY, value(2))
    assert stored(offsets) == 2
    offsets.apply(KEY, None)
    assert stored(offsets) is None
    assert list(offsets.groups()) == []


def test_a_pending_offset_shows_when_its_transaction_commits() -> None:
    offsets = Offsets()
    offsets.apply(KEY, value(1))
    offsets.apply(KEY, value(2), 7)
    assert (stored(offsets), offsets.is_pending("g", "t", 0)) == (1, True)
    offsets.end_transaction(EndTransaction(7, 0, True))
    assert (stored(offsets), offsets.is_pending("g", "t", 0)) == (2, False)


def test_a_pending_offset_is_forgotten_when_its_transaction_aborts() -> None:
    offsets = Offsets()
    offsets.apply(KEY, value(2), 7)
    offsets.end_transaction(EndTransaction(7, 0, False))
    assert stored(offsets) is None
    assert not offsets.has_open_transaction("g")


def test_a_transaction_does_not_overwrite_what_was_committed_after_it() -> None:
    offsets = Offsets()
    offsets.apply(KEY, value(1), 7)
    offsets.apply(KEY, value(2))
    offsets.end_transaction(EndTransaction(7, 0, True))
    assert stored(offsets) == 2


def test_a_tombstone_voids_pending_offsets_of_all_producers() -> None:
    offsets = Offsets()
    offsets.apply(KEY, value(1), 7)
    offsets.apply(KEY, value(2), 8)
    assert list(offsets.pending("g")) == [TopicPartition("t", 0)]
    offsets.apply(KEY, None)
    assert not offsets.has_open_transaction("g")
    offsets.end_transaction(EndTransaction(7, 0, True))
    assert stored(offsets) is None


def test_one_producers_end_leaves_anothers_offset_pending() -> None:
    offsets = Offsets()
    offsets.apply(KEY, value(1), 7)
    offsets.apply(KEY, value(2), 8)
    offsets.end_transaction(EndTransaction(7, 0, True))
    assert (stored(offsets), offsets.is_pending("g", "t", 0)) == (1, True)


def test_an_offset_is_of_a_topic_by_id_as_far_as_ids_are_known() -> None:
    offsets = Offsets()
    offsets.apply(KEY, committed(1, 0, "", START_MS, topic_id=ID))
    offset = offsets.get("g", "t", 0)
    assert offset is not None
    assert [offset.is_of(topic_id) for topic_id in (ID, NO_UUID, OTHER_ID)] == [True, True, False]


def commit_of_version(version: int, **fields: object) -> OffsetCommitValue:
    groups = Groups()
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=None, commit_timestamp=int(str(fields.pop("at", -1)))
    )
    request = OffsetCommitRequest(
        group_id="g",
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
        **fields,  # type: ignore[arg-type]
    )
    (record,) = groups.ask(commit, request, Client(version)).records
    written = record.value  # type: ignore[union-attr]
    assert isinstance(written, OffsetCommitValue)
    return written


def test_a_client_of_version_1_says_when_the_offset_was_committed() -> None:
    assert commit_of_version(1, at=123).commit_timestamp == 123
    assert commit_of_version(1).commit_timestamp == START_MS


def test_a_client_of_versions_2_to_4_says_how_long_the_offset_is_kept() -> None:
    assert commit_of_version(2, retention_time_ms=1_000).expire_timestamp == START_MS + 1_000
    assert commit_of_version(2, retention_time_ms=(1 << 63) - 1).expire_timestamp == (1 << 63) - 1
    assert commit_of_version(2).expire_timestamp == -1


def test_null_metadata_is_stored_as_none_at_all() -> None:
    assert commit_of_version(8).metadata == ""


def test_many_groups_expire_in_several_goes() -> None:
    groups = Groups(offsets_retention_minutes=1)
    for number in range(GROUPS_AT_ONCE + 1):
        groups.shard.apply(offset_commit(f"g{number}", "t", 0, value(number)))
    groups.shard.activate(groups.now_ms)
    interval_ms = groups.settings.offsets_retention_check_interval_ms
    assert len(groups.advance(interval_ms)) == 2 * GROUPS_AT_ONCE
    assert len(groups.advance(PAUSE_MS)) == 2
    assert groups.shard.state.groups == {}
    assert groups.advance(interval_ms - 1) == []


def test_offsets_that_kafka_0_8_wrote_are_loaded() -> None:
    groups = Groups()
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=0)
    old = LegacyOffsetCommitValue(offset=5, metadata="note", commit_timestamp=START_MS)
    groups.machine.apply(GroupRecord(key, old))
    offset = groups.shard.state.offsets.get("g", "t", 0)
    assert offset is not None
    assert (offset.offset, offset.metadata, offset.commit_timestamp_ms) == (5, "note", START_MS)
    groups.machine.apply(GroupRecord(key))
    assert groups.shard.state.offsets.get("g", "t", 0) is None


def commit_in_transaction(
    groups: Groups, epoch: int, topic: str, partition: int = 0, *, version: int = 5
) -> ErrorCode | None:
    request = txn_offset_commit(
        GROUP, "t", (1, 0), {topic: {partition: 5}}, member_id="a", generation_id_or_member_epoch=epoch
    )
    return groups.ask(commit_transactional, request, Client(version)).error


@pytest.mark.parametrize(
    ("version", "unknown", "outdated"),
    [
        (5, ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        (6, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_a_producer_knows_errors_of_epochs_since_version_6(
    version: int, unknown: ErrorCode, outdated: ErrorCode
) -> None:
    groups = Groups()
    groups.create_topic("foo", 1)
    assert commit_in_transaction(groups, 1, "foo", version=version) is unknown
    groups.join("a", ["foo"])
    assert commit_in_transaction(groups, 3, "foo", version=version) is outdated, "the epoch is yet to come"
    assert commit_in_transaction(groups, 1, "foo", 1, version=version) is outdated, "it is not assigned"


def test_a_producer_of_a_member_commits_by_the_epoch_at_which_the_partition_was_assigned() -> None:
    groups = Groups()
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    groups.create_topic("bar", 1)
    groups.advance(SOON_MS)
    assert groups.heartbeat("a", 2, topics=["foo", "bar"]).member_epoch == 3
    assert commit_in_transaction(groups, 3, "bar") is None
    assert commit_in_transaction(groups, 2, "foo") is None
    assert commit_in_transaction(groups, 2, "bar") is ErrorCode.ILLEGAL_GENERATION, "it was assigned at epoch 3"
    assert commit_in_transaction(groups, 2, "foo", 1) is ErrorCode.ILLEGAL_GENERATION, "it is not assigned"
    assert commit_in_transaction(groups, 2, "nothing") is ErrorCode.ILLEGAL_GENERATION, "it does not exist"
    assert commit_in_transaction(groups, 4, "foo") is ErrorCode.ILLEGAL_GENERATION, "the epoch is yet to come"

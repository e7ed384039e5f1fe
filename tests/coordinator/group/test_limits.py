"""The limits of a group's members and commits: each bound, at it and one past it."""

from __future__ import annotations

from coordinator.group.offsets.commit import commit, commit_transactional
from coordinator.group.state import Client
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.group.classic_world import ClassicGroups
from tests.coordinator.group.consumer_world import Groups

CLIENT = Client(9, "client", "/10.0.0.1")


def test_a_full_classic_group_takes_nobody_new() -> None:
    groups = ClassicGroups(group_max_size=2)
    one, two = groups.stable(2)
    assert groups.join().answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.join(one).waits
    assert two in groups.classic.members


def test_metadata_of_an_offset_has_a_greatest_length() -> None:
    groups = Groups(offset_metadata_max_bytes=4)
    codes = []
    for metadata in ("four", "fives"):
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=metadata)
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[OffsetCommitRequestTopic(name="t", partitions=[part])],
        )
        codes.append(groups.ask(commit, request, CLIENT).answer.topics[0].partitions[0].error_code)
    assert codes == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_metadata_of_a_transactions_offset_has_a_greatest_length() -> None:
    groups = Groups(offset_metadata_max_bytes=4)
    codes = []
    for metadata in ("four", "fives"):
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=metadata)
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[part])],
        )
        codes.append(groups.ask(commit_transactional, request, CLIENT).answer.topics[0].partitions[0].error_code)
    assert codes == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_a_member_id_that_is_never_used_is_forgotten_after_its_session_timeout() -> None:
    groups = ClassicGroups()
    given = groups.join(version=4).answer
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert given.member_id in groups.classic.pending_joins
    groups.advance(10_000)
    assert given.member_id not in groups.classic.pending_joins

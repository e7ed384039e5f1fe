"""Tests groups that change between the classic protocol and the streams protocol while they are empty."""

from __future__ import annotations

import pytest

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.offsets.commit import commit
from coordinator.group.records import GroupRecord
from coordinator.group.requests import join_group
from coordinator.group.state import Client
from coordinator.group.streams.group import StreamsGroup
from protocol.coordinator_records.streams_group import StreamsGroupMetadataKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coordinator.group.streams.world import StreamsGroups
from tests.coordinator.group.world import GROUP

CLIENT = Client(9, "client", "/host")


def join_classic(groups: StreamsGroups) -> None:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="stream", metadata=b"")],
    )
    groups.ask(join_group, request, Client(3, "client", "/host"))
    groups.advance(3_000)


def commit_offset(groups: StreamsGroups) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name="topic", partitions=[partition])],
    )
    assert groups.ask(commit, request, CLIENT).answer.topics[0].partitions[0].error_code == 0


def test_a_classic_group_without_members_becomes_a_streams_group_and_keeps_its_offsets() -> None:
    groups = StreamsGroups()
    commit_offset(groups)
    assert isinstance(groups.shard.state.groups[GROUP], ClassicGroup)
    groups.enter("m1")
    assert isinstance(groups.shard.state.groups[GROUP], StreamsGroup)
    assert groups.shard.state.offsets.of_group(GROUP)["topic"][0].offset == 5
    groups.reload()
    assert isinstance(groups.shard.state.groups[GROUP], StreamsGroup)


def test_a_classic_group_with_members_refuses_streams_members() -> None:
    groups = StreamsGroups()
    join_classic(groups)
    with pytest.raises(KafkaError, match="is not a streams group") as error:
        groups.enter("m1")
    assert error.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_streams_group_with_members_refuses_classic_members() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    join_classic(groups)
    assert isinstance(groups.shard.state.groups[GROUP], StreamsGroup)


def test_a_streams_group_without_members_becomes_a_classic_group() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    groups.beat("m1", -1)
    join_classic(groups)
    assert isinstance(groups.shard.state.groups[GROUP], ClassicGroup)
    gone = [record for record in groups.log if isinstance(record.key, StreamsGroupMetadataKey)][-1]
    assert isinstance(gone, GroupRecord)
    assert gone.value is None
    groups.reload()
    assert isinstance(groups.shard.state.groups[GROUP], ClassicGroup)

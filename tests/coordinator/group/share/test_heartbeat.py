"""Tests share groups: heartbeats, epochs, state of their partitions, sessions and administration, record by record."""

from __future__ import annotations

import pytest

from coordinator.engine.result import Result
from coordinator.group.group import GroupType
from coordinator.group.modern.requests import MAX_TOPIC_NAMES
from coordinator.group.offsets.commit import commit_transactional
from coordinator.group.records import AnyRecord, GroupRecord
from coordinator.group.share.describe import described
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.heartbeat import HeartbeatResult, heartbeat
from coordinator.group.share.initialization import initialized, topics_deleted, uninitialized
from coordinator.group.share.offsets import Altered, Wanted, alter, begin_delete, begin_delete_all, deleted
from coordinator.group.state import Client
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.types import Uuid
from tests.coordinator.driver import Asked
from tests.coordinator.group.world import GROUP, SOON_MS, Groups
from tests.group_requests import txn_offset_commit


class ShareGroups(Groups):
    """A shard with a share group."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.topic_id = self.create_topic("topic", 2)

    @property
    def share(self) -> ShareGroup:
        group = self.shard.state.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    @property
    def kinds(self) -> list[str]:
        """Returns the kinds of the written records, with a - for tombstones."""
        return [
            ("-" if record.value is None else "")
            + type(record.key).__name__.removeprefix("ShareGroup").removesuffix("Key")
            for record in self.written
            if isinstance(record, GroupRecord)
        ]

    def beat(self, member: str, epoch: int, *topics: str, rack: str | None = None) -> HeartbeatResult:
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=member, member_epoch=epoch, rack_id=rack,
            subscribed_topic_names=list(topics) or None,
        )  # fmt: skip
        return self.ask(heartbeat, request, Client(1, "client", "/host")).answer

    def refusal_of(self, member: str, epoch: int, *topics: str) -> ErrorCode:
        with pytest.raises(KafkaError) as error:
            self.beat(member, epoch, *topics)
        return error.value.code

    def enter(self, member: str, *topics: str) -> HeartbeatResult:
        """Joins; initializes the member's state if requested, and sends a heartbeat when an assignment may be made."""
        heard = self.beat(member, 0, *topics)
        initialize = heard.initialize
        if initialize is not None:
            self.ask(initialized, initialize, None)
        self.now_ms += SOON_MS
        return self.beat(member, heard.response.member_epoch)


def alter_offsets(groups: ShareGroups, starts: Wanted) -> Asked[Altered, AnyRecord]:
    return groups.ask(alter, GROUP, starts)


def partitions(heard: HeartbeatResult) -> dict[Uuid, list[int]] | None:
    assignment = heard.response.assignment
    return None if assignment is None else {topic.topic_id: topic.partitions for topic in assignment.topic_partitions}


@pytest.mark.parametrize("version", [1, 6])
def test_a_share_group_has_no_committed_offsets(version: int) -> None:
    groups = ShareGroups()
    groups.enter("a", "topic")
    request = txn_offset_commit(GROUP, "t", (1, 0), {"topic": {0: 5}})
    assert groups.ask(commit_transactional, request, Client(version)).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_joins_and_state_is_asked_for() -> None:
    groups = ShareGroups()
    heard = groups.beat("m1", 0, "topic")
    assert groups.kinds == [
        "MemberMetadata", "Metadata", "TargetAssignmentMember", "TargetAssignmentMetadata", "CurrentMemberAssignment",
        "StatePartitionMetadata",
    ]  # fmt: skip
    assert (heard.response.member_epoch, partitions(heard)) == (2, {})
    assert heard.initialize is not None
    assert (heard.initialize.state_epoch, heard.initialize.offsets) == (2, {groups.topic_id: {0: -1, 1: -1}})
    assert groups.share.type is GroupType.SHARE


def test_once_the_state_is_there_its_partitions_are_assigned() -> None:
    groups = ShareGroups()
    heard = groups.enter("m1", "topic")
    assert groups.kinds == [
        "Metadata", "TargetAssignmentMember", "TargetAssignmentMetadata", "CurrentMemberAssignment",
    ]  # fmt: skip
    assert (heard.response.member_epoch, partitions(heard)) == (3, {groups.topic_id: [0, 1]})
    assert groups.beat("m1", 3) == HeartbeatResult(heard.response.__class__(
        error_code=0, member_id="m1", member_epoch=3, heartbeat_interval_ms=5000,
    ))  # fmt: skip
    assert groups.kinds == []


def test_state_that_could_not_be_made_is_asked_for_again() -> None:
    groups = ShareGroups()
    initialize = groups.beat("m1", 0, "topic").initialize
    assert initialize is not None
    assert groups.beat("m1", 2).initialize is None
    groups.ask(uninitialized, initialize, None)
    assert groups.kinds == ["StatePartitionMetadata"]
    assert groups.beat("m1", 2).initialize is not None


def test_state_that_is_not_made_in_time_is_asked_for_again() -> None:
    groups = ShareGroups(group_share_initialize_retry_interval_ms=500)
    groups.beat("m1", 0, "topic")
    groups.now_ms += 499
    assert groups.beat("m1", 2).initialize is None
    groups.now_ms += 1
    assert groups.beat("m1", 2).initialize is not None


def test_members_share_partitions_where_there_are_too_few() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    owned = [partitions(groups.enter(member, "topic")) for member in ("m2", "m3", "m4")]
    assert all(owned)
    targets = [sorted(groups.share.target(f"m{number}").get(groups.topic_id, ())) for number in range(1, 5)]
    assert sorted(index for target in targets for index in target) == [0, 0, 1, 1]


def test_epochs_that_are_not_the_members_are_fenced() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    assert groups.refusal_of("m1", 4) is ErrorCode.FENCED_MEMBER_EPOCH
    assert groups.refusal_of("m1", 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert groups.beat("m1", 2).response.member_epoch == 3
    assert groups.refusal_of("m2", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_that_make_no_sense_are_refused() -> None:
    groups = ShareGroups(group_share_max_size=1)
    assert groups.refusal_of("m1", 0) is ErrorCode.INVALID_REQUEST
    assert groups.refusal_of("", 0, "topic") is ErrorCode.INVALID_REQUEST
    assert groups.refusal_of("m1", -2) is ErrorCode.INVALID_REQUEST
    assert groups.refusal_of("m1", 1) is ErrorCode.GROUP_ID_NOT_FOUND
    groups.enter("m1", "topic")
    assert groups.refusal_of("m2", 0, "topic") is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_leaves() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    groups.beat("m1", -1)
    assert groups.kinds == [
        "-CurrentMemberAssignment", "-TargetAssignmentMember", "-MemberMetadata", "Metadata",
        "TargetAssignmentMetadata",
    ]  # fmt: skip
    assert (groups.share.state_name, groups.share.epoch, groups.share.assignment_epoch) == ("Empty", 4, 4)
    assert groups.shard.next_deadline_ms() is None or groups.shard.expire(1 << 60) is not None


def test_a_member_that_is_silent_for_too_long_is_gone() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    groups.advance(45_000)
    assert groups.kinds[-3:] == ["-MemberMetadata", "Metadata", "TargetAssignmentMetadata"]
    assert groups.share.is_empty


def test_a_group_is_described() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    answer = described(groups.shard.state, GROUP)
    assert (answer.group_state, answer.group_epoch, answer.assignment_epoch, answer.assignor_name) == (
        "Stable", 3, 3, "simple",
    )  # fmt: skip
    assert [topic.topic_name for topic in answer.members[0].assignment.topic_partitions] == ["topic"]
    assert described(groups.shard.state, "other").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_group_without_members_are_altered() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    starts = {"topic": {1: 7, 9: 7}, "nothing": {0: 7}}
    assert alter_offsets(groups, starts).error is ErrorCode.NON_EMPTY_GROUP
    groups.beat("m1", -1)
    altered = alter_offsets(groups, starts).answer
    assert groups.kinds == ["StatePartitionMetadata"]
    assert altered.initialize.offsets == {groups.topic_id: {1: 7}}
    assert {key: error.code for key, error in altered.errors.items()} == {
        ("topic", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_topic_without_partitions_makes_a_group_and_one_that_is_not_there_makes_none() -> None:
    groups = ShareGroups()
    alter_offsets(groups, {"nothing": {0: 7}})
    assert GROUP not in groups.shard.state.groups
    altered = alter_offsets(groups, {"topic": {}}).answer
    assert altered.initialize.offsets == {groups.topic_id: {}}
    assert groups.share.state_name == "Empty"


def test_offsets_are_deleted_in_two_steps() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    groups.beat("m1", -1)
    deletion = groups.ask(begin_delete, GROUP, ["topic", "nothing"]).answer
    assert deletion.partitions == {groups.topic_id: frozenset({0, 1})}
    assert list(deletion.errors) == ["nothing"]
    assert groups.share.topics.deleting == {groups.topic_id: "topic"}
    groups.ask(deleted, GROUP, frozenset({groups.topic_id}))
    assert groups.share.topics.is_empty


def test_a_group_that_is_deleted_gives_its_state_up_first() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    assert groups.ask(begin_delete_all, GROUP, None).answer.partitions == {}
    groups.beat("m1", -1)
    deletion = groups.ask(begin_delete_all, GROUP, None).answer
    assert deletion.partitions == {groups.topic_id: frozenset({0, 1})}
    groups.send(lambda ticket, now_ms: Result(groups.share.tombstones()))
    assert groups.kinds == ["-TargetAssignmentMetadata", "-StatePartitionMetadata", "-Metadata"]
    assert GROUP not in groups.shard.state.groups


def test_topics_that_are_gone_leave_the_book() -> None:
    groups = ShareGroups()
    groups.enter("m1", "topic")
    groups.send(lambda ticket, now_ms: topics_deleted(groups.shard.state, {"topic": groups.topic_id}, now_ms))
    assert groups.share.topics.is_empty


def test_the_members_of_a_share_group_name_only_so_many_topics() -> None:
    groups = ShareGroups()
    names = [f"topic-{number}" for number in range(MAX_TOPIC_NAMES + 1)]
    assert groups.refusal_of("a", 0, *names) is ErrorCode.INVALID_REQUEST
    groups.beat("a", 0, *names[1:])
    groups.beat("b", 0, *names[1:])
    assert groups.refusal_of("c", 0, names[0]) is ErrorCode.INVALID_REQUEST

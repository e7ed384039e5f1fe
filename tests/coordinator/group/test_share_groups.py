"""Share groups: heartbeats, epochs, state for their partitions, sessions, administration, record by record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from coordinator.engine.result import Result, Ticket
from coordinator.group.group import GroupType
from coordinator.group.records import GroupRecord, GroupResult
from coordinator.group.share.describe import described
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.heartbeat import HeartbeatResult, heartbeat
from coordinator.group.share.initialization import initialized, topics_deleted, uninitialized
from coordinator.group.share.offsets import Altered, Deletion, alter, begin_delete, begin_delete_all, deleted
from coordinator.group.state import Client
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.types import Uuid
from tests.coordinator.group.consumer_world import GROUP, SOON_MS, Groups

A = TypeVar("A")


class ShareGroups:
    """A shard with a share group, and what it was last made to write."""

    def __init__(self, **settings: object) -> None:
        self.world = Groups(**settings)
        self.topic_id = self.world.create_topic("topic", 2)
        self.written: list[str] = []

    @property
    def group(self) -> ShareGroup:
        group = self.world.shard.state.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    def decide(self, decide: Callable[[Ticket[A]], GroupResult]) -> A:
        ticket: Ticket[A] = Ticket()
        result = decide(ticket)
        self.apply(result)
        return next(reply.answer for reply in result.replies if reply.ticket is ticket)  # type: ignore[return-value]

    def apply(self, result: GroupResult) -> None:
        self.written = []
        for record in result.records:
            assert isinstance(record, GroupRecord)
            name = type(record.key).__name__.removeprefix("ShareGroup").removesuffix("Key")
            self.written.append(name if record.value is not None else f"-{name}")
            self.world.shard.apply(record)
        for effect in result.effects:
            effect()

    def beat(self, member: str, epoch: int, *topics: str, rack: str | None = None) -> HeartbeatResult:
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=member, member_epoch=epoch, rack_id=rack,
            subscribed_topic_names=list(topics) or None,
        )  # fmt: skip
        state, now_ms = self.world.shard.state, self.world.now_ms
        return self.decide(lambda ticket: heartbeat(state, request, Client(1, "client", "/host"), ticket, now_ms))

    def refusal_of(self, member: str, epoch: int, *topics: str) -> ErrorCode:
        with pytest.raises(KafkaError) as error:
            self.beat(member, epoch, *topics)
        return error.value.code

    def join(self, member: str, *topics: str) -> HeartbeatResult:
        """Joins, has its state made if that is asked for, and comes back when an assignment may be made."""
        heard = self.beat(member, 0, *topics)
        initialize = heard.initialize
        if initialize is not None:
            self.decide(lambda ticket: initialized(self.world.shard.state, initialize, None, ticket, self.world.now_ms))
        self.world.now_ms += SOON_MS
        return self.beat(member, heard.response.member_epoch)


def partitions(heard: HeartbeatResult) -> dict[Uuid, list[int]] | None:
    assignment = heard.response.assignment
    return None if assignment is None else {topic.topic_id: topic.partitions for topic in assignment.topic_partitions}


def test_a_member_joins_and_state_is_asked_for() -> None:
    groups = ShareGroups()
    heard = groups.beat("m1", 0, "topic")
    assert groups.written == [
        "MemberMetadata", "Metadata", "TargetAssignmentMember", "TargetAssignmentMetadata", "CurrentMemberAssignment",
        "StatePartitionMetadata",
    ]  # fmt: skip
    assert (heard.response.member_epoch, partitions(heard)) == (2, {})
    assert heard.initialize is not None
    assert (heard.initialize.state_epoch, heard.initialize.offsets) == (2, {groups.topic_id: {0: -1, 1: -1}})
    assert groups.group.type is GroupType.SHARE


def test_once_the_state_is_there_its_partitions_are_assigned() -> None:
    groups = ShareGroups()
    heard = groups.join("m1", "topic")
    assert groups.written == [
        "Metadata", "TargetAssignmentMember", "TargetAssignmentMetadata", "CurrentMemberAssignment",
    ]  # fmt: skip
    assert (heard.response.member_epoch, partitions(heard)) == (3, {groups.topic_id: [0, 1]})
    assert groups.beat("m1", 3) == HeartbeatResult(heard.response.__class__(
        error_code=0, member_id="m1", member_epoch=3, heartbeat_interval_ms=5000,
    ))  # fmt: skip
    assert groups.written == []


def test_state_that_could_not_be_made_is_asked_for_again() -> None:
    groups = ShareGroups()
    initialize = groups.beat("m1", 0, "topic").initialize
    assert initialize is not None
    assert groups.beat("m1", 2).initialize is None
    groups.decide(lambda ticket: uninitialized(groups.world.shard.state, initialize, None, ticket, groups.world.now_ms))
    assert groups.written == ["StatePartitionMetadata"]
    assert groups.beat("m1", 2).initialize is not None


def test_state_that_is_not_made_in_time_is_asked_for_again() -> None:
    groups = ShareGroups(group_share_initialize_retry_interval_ms=500)
    groups.beat("m1", 0, "topic")
    groups.world.now_ms += 499
    assert groups.beat("m1", 2).initialize is None
    groups.world.now_ms += 1
    assert groups.beat("m1", 2).initialize is not None


def test_members_share_partitions_where_there_are_too_few() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    owned = [partitions(groups.join(member, "topic")) for member in ("m2", "m3", "m4")]
    assert all(owned)
    targets = [sorted(groups.group.target(f"m{number}").get(groups.topic_id, ())) for number in range(1, 5)]
    assert sorted(index for target in targets for index in target) == [0, 0, 1, 1]


def test_epochs_that_are_not_the_members_are_fenced() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
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
    groups.join("m1", "topic")
    assert groups.refusal_of("m2", 0, "topic") is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_leaves() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    groups.beat("m1", -1)
    assert groups.written == [
        "-CurrentMemberAssignment", "-TargetAssignmentMember", "-MemberMetadata", "Metadata",
    ]  # fmt: skip
    assert (groups.group.state_name, groups.group.epoch) == ("Empty", 4)
    assert groups.world.shard.next_deadline_ms() is None or groups.world.shard.expire(1 << 60) is not None


def test_a_member_that_is_silent_for_too_long_is_gone() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    groups.apply(groups.world.shard.expire(groups.world.now_ms + 45_000))
    assert groups.written[-2:] == ["-MemberMetadata", "Metadata"]
    assert groups.group.is_empty


def test_a_group_is_described() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    answer = described(groups.world.shard.state, GROUP)
    assert (answer.group_state, answer.group_epoch, answer.assignment_epoch, answer.assignor_name) == (
        "Stable", 3, 3, "simple",
    )  # fmt: skip
    assert [topic.topic_name for topic in answer.members[0].assignment.topic_partitions] == ["topic"]
    assert described(groups.world.shard.state, "other").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_group_without_members_are_altered() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    starts = {"topic": {1: 7, 9: 7}, "nothing": {0: 7}}
    state, now_ms = groups.world.shard.state, groups.world.now_ms
    with pytest.raises(KafkaError) as refused:
        alter(state, GROUP, starts, Ticket(), now_ms)
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    groups.beat("m1", -1)
    altered: Altered = groups.decide(lambda ticket: alter(state, GROUP, starts, ticket, now_ms))
    assert groups.written == ["StatePartitionMetadata"]
    assert altered.initialize.offsets == {groups.topic_id: {1: 7}}
    assert {key: error.code for key, error in altered.errors.items()} == {
        ("topic", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_topic_without_partitions_makes_a_group_and_one_that_is_not_there_makes_none() -> None:
    groups = ShareGroups()
    state, now_ms = groups.world.shard.state, groups.world.now_ms
    groups.decide(lambda ticket: alter(state, GROUP, {"nothing": {0: 7}}, ticket, now_ms))
    assert GROUP not in state.groups
    altered: Altered = groups.decide(lambda ticket: alter(state, GROUP, {"topic": {}}, ticket, now_ms))
    assert altered.initialize.offsets == {groups.topic_id: {}}
    assert groups.group.state_name == "Empty"


def test_offsets_are_deleted_in_two_steps() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    groups.beat("m1", -1)
    state, now_ms = groups.world.shard.state, groups.world.now_ms
    deletion: Deletion = groups.decide(lambda ticket: begin_delete(state, GROUP, ["topic", "nothing"], ticket, now_ms))
    assert deletion.partitions == {groups.topic_id: frozenset({0, 1})}
    assert list(deletion.errors) == ["nothing"]
    assert groups.group.topics.deleting == {groups.topic_id: "topic"}
    groups.decide(lambda ticket: deleted(state, GROUP, frozenset({groups.topic_id}), ticket, now_ms))
    assert groups.group.topics.is_empty


def test_a_group_that_is_deleted_gives_its_state_up_first() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    state, now_ms = groups.world.shard.state, groups.world.now_ms
    assert groups.decide(lambda ticket: begin_delete_all(state, GROUP, None, ticket, now_ms)).partitions == {}
    groups.beat("m1", -1)
    deletion: Deletion = groups.decide(lambda ticket: begin_delete_all(state, GROUP, None, ticket, now_ms))
    assert deletion.partitions == {groups.topic_id: frozenset({0, 1})}
    groups.apply(Result(groups.group.tombstones()))
    assert groups.written == ["-TargetAssignmentMetadata", "-StatePartitionMetadata", "-Metadata"]
    assert GROUP not in state.groups


def test_topics_that_are_gone_leave_the_book() -> None:
    groups = ShareGroups()
    groups.join("m1", "topic")
    groups.apply(topics_deleted(groups.world.shard.state, {"topic": groups.topic_id}, groups.world.now_ms))
    assert groups.group.topics.is_empty

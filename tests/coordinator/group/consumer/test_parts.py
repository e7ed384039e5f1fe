"""Tests the parts of consumer groups: reconciliation, commits, counts, hashes, records of older versions."""

from __future__ import annotations

import pytest

from coordinator.cluster.changes import FeatureChanged, PartitionChanged
from coordinator.cluster.topics.topic import PartitionRegistration
from coordinator.group.consumer import records
from coordinator.group.consumer.describe import described
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member, MemberState
from coordinator.group.consumer.reconciliation import Step, reconcile
from coordinator.group.consumer.subscriptions import Subscriptions
from coordinator.group.group import GroupType
from coordinator.group.offsets.offsets import Offset
from coordinator.group.records import GroupRecord
from protocol.coordinator_records.consumer_group import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid
from tests.coordinator.group.world import GROUP, SOON_MS, Groups

FOO, BAR = (number.to_bytes(16, "big") for number in (1, 2))


def step(target: dict[Uuid, set[int]], **fields: object) -> Step:
    """Returns a step to epoch 11, of a member that subscribes to both topics and owns partitions that no other member
    owns."""
    assignment = {topic_id: frozenset(partitions) for topic_id, partitions in target.items()}
    return Step(
        **{  # type: ignore[arg-type]
            "target_epoch": 11,
            "target": assignment,
            "topics": {FOO, BAR},
            "subscription_changed": False,
            "claimed": None,
            "is_owned": lambda _topic_id, _index: False,
            **fields,
        }
    )


STABLE = Member("a", member_epoch=10, previous_member_epoch=9, assigned={FOO: {1: 8, 2: 9}})


def test_a_member_that_only_gets_partitions_moves_at_once() -> None:
    moved = reconcile(STABLE, step({FOO: {1, 2, 3}, BAR: {4}}))
    assert moved == STABLE._replace(
        member_epoch=11, previous_member_epoch=10, assigned={FOO: {1: 8, 2: 9, 3: 11}, BAR: {4: 11}}
    )


def test_a_member_that_loses_partitions_stays_at_its_epoch_until_it_has_given_them_up() -> None:
    target = step({FOO: {2, 3}})
    revoking = reconcile(STABLE, target)
    assert revoking == STABLE._replace(
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_member_epoch=10,
        assigned={FOO: {2: 9}},
        pending_revocation={FOO: {1: 8}},
    )
    assert reconcile(revoking, target) == revoking
    assert reconcile(revoking, target._replace(claimed={FOO: [1, 2]})) == revoking
    done = reconcile(revoking, target._replace(claimed={FOO: [2]}))
    assert (done.state, done.member_epoch, done.assigned) == (MemberState.STABLE, 11, {FOO: {2: 9, 3: 11}})


def test_a_member_that_gave_partitions_up_unasked_need_not_be_told() -> None:
    moved = reconcile(STABLE, step({FOO: {2}}, claimed={FOO: [2]}))
    assert (moved.state, moved.assigned, moved.pending_revocation) == (MemberState.STABLE, {FOO: {2: 9}}, {})


def test_a_member_waits_for_partitions_that_others_hold() -> None:
    waiting = reconcile(STABLE, step({FOO: {1, 2, 3, 4}}, is_owned=lambda _topic_id, index: index == 4))
    assert waiting.state is MemberState.UNRELEASED_PARTITIONS
    assert waiting.assigned == {FOO: {1: 8, 2: 9, 3: 11}}
    got = reconcile(waiting, step({FOO: {1, 2, 3, 4}}))
    assert (got.state, got.assigned) == (MemberState.STABLE, {FOO: {1: 8, 2: 9, 3: 11, 4: 11}})


def test_what_a_member_was_to_give_up_may_be_its_own_again() -> None:
    revoking = STABLE._replace(
        state=MemberState.UNREVOKED_PARTITIONS, assigned={FOO: {2: 9}}, pending_revocation={FOO: {1: 8}}
    )
    again = reconcile(revoking, step({FOO: {1, 2}}, claimed={FOO: [2]}, is_owned=lambda *_: True))
    assert (again.state, again.assigned) == (MemberState.STABLE, {FOO: {1: 11, 2: 9}})


def test_topics_that_are_no_longer_wanted_are_given_up_before_the_next_target() -> None:
    member = STABLE._replace(assigned={FOO: {1: 8}, BAR: {1: 9}})
    dropped = reconcile(member, step({}, target_epoch=10, topics={BAR}, subscription_changed=True))
    assert dropped == member._replace(
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_member_epoch=10,
        assigned={BAR: {1: 9}},
        pending_revocation={FOO: {1: 8}},
    )
    more = reconcile(dropped, step({}, target_epoch=10, topics=set(), subscription_changed=True))
    assert (more.assigned, more.pending_revocation) == ({}, {FOO: {1: 8}, BAR: {1: 9}})
    same = reconcile(STABLE, step({}, target_epoch=10, subscription_changed=True))
    assert same is STABLE


def test_a_member_of_an_unknown_state_starts_over() -> None:
    unknown = STABLE._replace(state=MemberState.UNKNOWN, assigned={})
    for claimed in (None, {FOO: [1]}):
        with pytest.raises(KafkaError) as refused:
            reconcile(unknown, step({}, claimed=claimed))
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    moved = reconcile(unknown, step({FOO: {1}}, claimed={}))
    assert (moved.state, moved.member_epoch, moved.assigned) == (MemberState.STABLE, 11, {FOO: {1: 11}})


# Offsets.


@pytest.fixture
def group() -> ConsumerGroup:
    """Returns a group in which member a, at epoch 10, has partition 1 of topic foo since epoch 8, and classic member c
    is at the same epoch."""
    group = ConsumerGroup("g")
    group.put(STABLE._replace(pending_revocation={FOO: {7: 5}}))
    group.put(Member("c", member_epoch=10, classic=ClassicMemberMetadata(session_timeout_ms=1, supported_protocols=[])))
    return group


def commit(group: ConsumerGroup, member_id: str, epoch: int, version: int = 9, partition: int = 1) -> ErrorCode:
    try:
        group.check_offset_commit(member_id, None, epoch, version, transactional=False)("foo", FOO, partition)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    ("epoch", "partition", "code"),
    [
        (10, 99, ErrorCode.NONE),
        (11, 1, ErrorCode.STALE_MEMBER_EPOCH),
        (9, 1, ErrorCode.NONE),
        (8, 1, ErrorCode.NONE),
        (7, 1, ErrorCode.STALE_MEMBER_EPOCH),
        (8, 2, ErrorCode.STALE_MEMBER_EPOCH),
        (5, 7, ErrorCode.NONE),
        (9, 99, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_an_older_epoch_may_commit_what_the_member_has_had_since(
    group: ConsumerGroup, epoch: int, partition: int, code: ErrorCode
) -> None:
    assert commit(group, "a", epoch, partition=partition) is code


def test_who_may_commit(group: ConsumerGroup) -> None:
    assert commit(group, "a", 10, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit(group, "c", 10, version=1) is ErrorCode.NONE
    assert commit(group, "c", 11) is ErrorCode.ILLEGAL_GENERATION
    assert commit(group, "c", 9) is ErrorCode.ILLEGAL_GENERATION
    assert commit(group, "nobody", 10) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(group, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(ConsumerGroup("empty"), "", -1) is ErrorCode.NONE
    group.check_offset_commit("", None, -1, 3, transactional=True)
    group.check_offset_commit("a", None, 10, 3, transactional=True)


def test_who_may_fetch(group: ConsumerGroup) -> None:
    group.check_offset_fetch(None, -1)
    group.check_offset_fetch("a", 10)
    for member_id, epoch, code in (
        ("a", 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("c", 9, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(KafkaError) as refused:
            group.check_offset_fetch(member_id, epoch)
        assert refused.value.code is code


def test_what_a_group_says_of_itself(group: ConsumerGroup) -> None:
    assert (group.type, group.protocol_type, group.expires) == (GroupType.CONSUMER, "consumer", True)
    assert group.has_member("a")
    assert not group.is_subscribed_to("foo")
    group.check_offset_delete()
    with pytest.raises(KafkaError) as refused:
        group.check_delete()
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    ConsumerGroup("empty").check_delete()
    assert group.retained_from_ms(Offset(1, -1, "", 77)) == 77


# Subscriptions and hashes.


def test_subscriptions_are_alike_by_name_or_by_pattern() -> None:
    counts = Subscriptions()
    assert counts.are_alike(0)
    a, b = Member("a", topic_names=frozenset({"foo"})), Member("b", topic_names=frozenset({"foo"}))
    counts.replace(None, a)
    counts.replace(None, b)
    assert counts.are_alike(2)
    wider = b._replace(topic_names=frozenset({"foo", "bar"}))
    counts.replace(b, wider)
    assert not counts.are_alike(2)
    pattern = Member("a", topic_regex="f.*")
    counts.replace(a, pattern)
    counts.replace(wider, pattern._replace(member_id="b"))
    counts.resolve((), ("foo", "fox"))
    assert counts.are_alike(2)
    assert counts.topics == {"foo", "fox"}
    counts.replace(pattern, a)
    assert not counts.are_alike(2)


def test_only_what_a_hash_covers_is_a_change() -> None:
    groups = Groups()
    groups.create_topic("foo", 1)
    before, hashed = groups.watch.changes, groups.watch.group_hash(["foo"])
    topic = groups.topics.by_name["foo"]
    moved = topic.partitions[0]._replace(leader=-1, isr=())
    groups.watch.note(PartitionChanged(topic, 0, topic.partitions[0], moved))
    groups.watch.note(FeatureChanged("group.version", 1))
    assert groups.watch.changes == before
    groups.watch.note(PartitionChanged(topic, 0, moved, PartitionRegistration(replicas=(2,), isr=(), leader=2)))
    assert groups.watch.changes == before + 1
    assert groups.watch.group_hash(["foo"]) == hashed  # no broker has a rack
    groups.add_partitions("foo", 1)
    assert groups.watch.group_hash(["foo"]) != hashed
    assert groups.watch.group_hash(["foo", "bar"]) == groups.watch.group_hash(["foo"])


# Records.


def test_a_record_of_before_assignment_epochs_has_the_members() -> None:
    groups = Groups()
    groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    owned = [AssignedTopicPartitions(topic_id=FOO, partitions=[0, 1], assignment_epochs=None)]
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=-2, previous_member_epoch=1, state=9, assigned_partitions=owned, partitions_pending_revocation=[]
    )
    groups.shard.apply(GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"), value))
    member = groups.member("a")
    assert (member.assigned, member.state) == ({FOO: {0: 0, 1: 0}}, MemberState.UNKNOWN)


def test_kafka_4_0s_records_of_topics_are_known_of_and_deleted() -> None:
    groups = Groups()
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    groups.shard.apply(GroupRecord(key, ConsumerGroupPartitionMetadataValue(topics=[])))
    groups.advance(SOON_MS)
    groups.add_partitions("foo", 1)
    groups.heartbeat("a", 2)
    assert records.partition_metadata_gone(GROUP) in groups.written
    assert not groups.group.has_partition_metadata


def test_tombstones_of_what_is_not_there_change_nothing() -> None:
    groups = Groups()
    gone = [*ConsumerGroup(GROUP).tombstones_of(["a"]), records.regex_gone(GROUP, "x")]
    for record in gone:
        groups.shard.apply(record)
    assert groups.shard.state.groups == {}


def test_the_end_of_a_group_takes_all_of_it() -> None:
    groups = Groups()
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"], subscribed_topic_regex="f.*")
    groups.match_patterns()
    for record in groups.group.tombstones():
        groups.shard.apply(record)
    assert GROUP not in groups.shard.state.groups
    assert not any("member" in str(key) for key in groups.shard.state.timers)


def test_a_group_that_is_not_there_is_described_so() -> None:
    groups = Groups()
    answer = described(groups.shard.state, GROUP)
    assert (answer.error_code, answer.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, f"Group {GROUP} not found.")


def test_deleted_topics_are_not_described() -> None:
    groups = Groups()
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    groups.delete_topic("foo")
    (member,) = described(groups.shard.state, GROUP).members
    assert (member.assignment.topic_partitions, member.target_assignment.topic_partitions) == ([], [])
    assert member.member_type == 1

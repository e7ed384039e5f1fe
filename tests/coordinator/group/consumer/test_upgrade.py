"""Tests groups that change protocol while they run: upgrades, mixed groups, downgrades, and when these are not
allowed."""

from __future__ import annotations

import pytest

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rendezvous import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator.group.consumer import records
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import MemberState
from coordinator.group.modern.requests import MAX_TOPIC_NAMES
from coordinator.group.records import GroupRecord, classic_group_gone
from protocol.consumer_protocol import ConsumerProtocolAssignment, read
from protocol.errors import ErrorCode
from protocol.messages.leave_group import MemberIdentity
from protocol.types import Uuid
from tests.coordinator.group.consumer.mixed import MixedGroups, assignment
from tests.coordinator.group.world import GROUP, SOON_MS, assigned


@pytest.fixture
def groups() -> MixedGroups:
    return MixedGroups()


@pytest.fixture
def foo(groups: MixedGroups) -> Uuid:
    return groups.create_topic("foo", 2)


def test_a_consumer_that_joins_makes_a_classic_group_a_consumer_group(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    joined = groups.join("b", ["foo"])
    written = groups.written
    assert (joined.member_epoch, assigned(joined)) == (2, {})
    migrated = groups.member(old)
    assert (migrated.member_epoch, migrated.assigned, migrated.state) == (1, {foo: {0: 1, 1: 1}}, MemberState.STABLE)
    metadata_hash = groups.watch.group_hash(["foo"])
    assert written[:6] == [
        classic_group_gone(GROUP),
        records.COMMON.member(GROUP, migrated),
        records.COMMON.epoch(GROUP, 1, metadata_hash),
        records.COMMON.target(GROUP, old, {foo: frozenset({0, 1})}),
        records.COMMON.target_epoch(GROUP, 1, 0),
        records.COMMON.current(GROUP, migrated),
    ]
    assert [type(record.key).__name__ for record in written[6:]] == [
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMetadataKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupCurrentMemberAssignmentKey",
    ]


def test_a_classic_member_rebalances_inside_the_consumer_group(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    assert groups.classic_heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    response = groups.classic_join(old, {"foo": [0, 1]}).answer
    assert (response.generation_id, response.protocol_name, response.leader, response.members) == (1, "range", "", [])
    assert groups.own(old, 1) == {"foo": [0]}
    assert groups.member(old).state is MemberState.UNREVOKED_PARTITIONS
    assert groups.classic_heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    done = groups.classic_join(old, {"foo": [0]}).answer
    assert done.generation_id == 2
    assert groups.own(old, 2) == {"foo": [0]}
    assert groups.classic_heartbeat(old, 2) is ErrorCode.NONE
    assert assigned(groups.heartbeat("b", 2)) == {foo: [1]}


def test_a_classic_member_that_does_not_rejoin_in_time_is_fenced(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    groups.classic_heartbeat(old, 1)
    groups.advance(3_000)
    groups.classic_heartbeat(old, 1)
    assert groups.advance(2_999) == []
    groups.advance(1)
    assert list(groups.group.members) == ["b"]


def test_a_classic_member_that_does_not_sync_in_time_is_fenced(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    groups.classic_join(old, {"foo": [0, 1]})
    assert groups.advance(5_999) == []
    groups.advance(1)
    assert list(groups.group.members) == ["b"]


def test_a_classic_member_keeps_its_own_session_timeout(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    groups.advance(9_999)
    assert old in groups.group.members
    groups.advance(1)
    assert old not in groups.group.members


def test_a_classic_member_that_waits_for_the_others_is_told_to_join_again(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    second = groups.classic_join("").answer
    waiting = groups.classic_join(second.member_id)
    assert groups.classic.state is PREPARING_REBALANCE
    groups.join("b", ["foo"])
    assert (waiting.answer.error_code, waiting.answer.member_id) == (ErrorCode.REBALANCE_IN_PROGRESS, second.member_id)
    assert set(groups.group.members) == {old, second.member_id, "b"}


def test_a_classic_member_joins_a_consumer_group(groups: MixedGroups, foo: Uuid) -> None:
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    refused = groups.classic_join("").answer
    assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = groups.classic_join(refused.member_id).answer
    assert (joined.error_code, joined.generation_id) == (0, 3)
    assert groups.own(joined.member_id, 3) == {}
    groups.heartbeat("a", 2, owned={foo: [0, 1]})
    assert groups.classic_heartbeat(joined.member_id, 3) is ErrorCode.NONE  # nothing is free yet
    groups.heartbeat("a", 2, owned={foo: [0]})
    assert groups.classic_heartbeat(joined.member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.classic_join(joined.member_id)
    assert groups.own(joined.member_id, 3) == {"foo": [1]}


def test_strategies_must_be_shared_among_classic_members(groups: MixedGroups, foo: Uuid) -> None:
    groups.new_classic_member()
    groups.join("b", ["foo"])
    for fields in ({"strategies": ("other",)}, {"protocol_type": "connect"}):
        code, _ = groups.refusal(lambda fields=fields: groups.classic_join("", **fields).answer)  # type: ignore[misc]
        assert code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_who_a_member_is_comes_before_what_it_reads(groups: MixedGroups, foo: Uuid) -> None:
    groups.join("a", ["foo"])
    unknown, _ = groups.refusal(lambda: groups.classic_join("a", instance_id="static", metadata=b"").answer)
    assert unknown is ErrorCode.UNKNOWN_MEMBER_ID
    unreadable, _ = groups.refusal(lambda: groups.classic_join("b", metadata=b"").answer)
    assert unreadable is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_generation_and_protocol_of_a_sync_are_checked(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    assert groups.refusal(lambda: groups.classic_sync(old, 7).answer)[0] is ErrorCode.ILLEGAL_GENERATION
    refusal = groups.refusal(lambda: groups.classic_sync(old, 1, protocol_name="sticky").answer)
    assert refusal[0] is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.refusal(lambda: groups.classic_sync(old, 1).answer)[0] is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.refusal(lambda: groups.classic_sync("b", 2).answer)[0] is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.refusal(lambda: groups.classic_heartbeat("b", 2))[0] is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_consumer_that_leaves_makes_the_group_classic_again(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    resolved = groups.group.tombstones_of([old, "b"])
    groups.heartbeat("b", -1)
    assert groups.written[:-1] == resolved
    last = groups.written[-1]
    assert isinstance(last, GroupRecord)
    group = groups.classic
    assert (group.generation, group.state, list(group.members)) == (2, PREPARING_REBALANCE, [old])
    assert group.members[old].assignment == assignment({"foo": [0]})
    assert last.value is not None
    assert [name for name, _ in group.members[old].strategies] == ["range", "sticky"]
    rejoined = groups.classic_join(old).answer
    assert (rejoined.generation_id, rejoined.leader) == (3, old)
    assert groups.classic.state is COMPLETING_REBALANCE


def test_a_member_whose_other_strategies_have_no_metadata_takes_part_in_a_classic_group_again(
    groups: MixedGroups, foo: Uuid
) -> None:
    """When the member joins, only the metadata of its first strategy is read."""
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    for protocol in groups.group.members[old].classic_protocols:
        protocol.metadata = b""
    groups.heartbeat("b", -1)
    (topic,) = read(ConsumerProtocolAssignment, groups.classic.members[old].assignment).assigned_partitions
    assert (topic.topic, topic.partitions) == ("foo", [0])


def test_a_group_that_is_loaded_before_it_could_rebalance_does_so_then(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    groups.heartbeat("b", -1)
    groups.reload()
    assert groups.classic.members[old].assignment == assignment({"foo": [0]})
    assert groups.classic_heartbeat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_consumer_that_is_fenced_makes_the_group_classic_again(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"])
    groups.classic_join(old, {"foo": [0]})
    groups.own(old, 2)
    for _ in range(9):
        groups.advance(5_000)
        if isinstance(groups.shard.state.groups[GROUP], ConsumerGroup):
            groups.classic_heartbeat(old, 2)
    assert groups.classic.generation == 2


def test_a_static_consumer_that_comes_back_classic_makes_the_group_classic(groups: MixedGroups, foo: Uuid) -> None:
    groups.join("a", ["foo"], instance_id="one")
    joined = groups.classic_join("", instance_id="one").answer
    assert (joined.error_code, joined.generation_id) == (0, 2)
    group = groups.classic
    assert (group.state, group.generation, list(group.members)) == (STABLE, 2, [joined.member_id])
    assert group.members[joined.member_id].assignment == assignment({"foo": [0, 1]})
    groups.advance(0)
    assert groups.classic.state is STABLE
    assert groups.classic_heartbeat(joined.member_id, 2) is ErrorCode.NONE
    assert groups.own(joined.member_id, 2) == {"foo": [0, 1]}


def test_a_classic_static_member_comes_back_as_a_consumer(groups: MixedGroups, foo: Uuid) -> None:
    joined = groups.classic_join("", instance_id="one")
    groups.advance(3_000)
    member_id = joined.answer.member_id
    groups.classic_sync(member_id, 1, {member_id: assignment({"foo": [0, 1]})})
    back = groups.join("b", ["foo"], instance_id="one")
    assert (back.member_epoch, assigned(back)) == (1, {foo: [0, 1]})
    assert list(groups.group.members) == ["b"]
    assert groups.group.classic_members == 0


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_upgrades_may_be_forbidden(policy: str) -> None:
    groups = MixedGroups(group_consumer_migration_policy=policy)
    groups.create_topic("foo", 2)
    groups.new_classic_member()
    assert groups.refusal(lambda: groups.join("b", ["foo"])) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {GROUP} to consumer group because online upgrade is disabled.",
    )


@pytest.mark.parametrize("policy", ["disabled", "upgrade", "DOWNGRADE", "bidirectional"])
def test_downgrades_may_be_forbidden(policy: str) -> None:
    groups = MixedGroups()
    groups.create_topic("foo", 2)
    groups.new_classic_member()
    groups.join("b", ["foo"])
    groups.settings = groups.settings._replace(group_consumer_migration_policy=policy)
    groups.heartbeat("b", -1)
    became = ClassicGroup if policy in ("DOWNGRADE", "bidirectional") else ConsumerGroup
    assert type(groups.shard.state.groups[GROUP]) is became


def test_classic_members_may_be_kept_out() -> None:
    groups = MixedGroups(group_consumer_migration_policy="disabled")
    groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    assert groups.refusal(lambda: groups.classic_join("").answer)[0] is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_of_a_custom_assignor_stays_classic(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.classic.members[old].assignment = assignment({"foo": [0]}, b"its own state")
    code, message = groups.refusal(lambda: groups.join("b", ["foo"]))
    assert code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "custom assignor" in message


def test_a_group_whose_bytes_are_no_consumers_stays_classic(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.classic.members[old].assignment = b"\0"
    assert groups.refusal(lambda: groups.join("b", ["foo"]))[1].endswith("protocol is malformed.")


def test_a_group_of_another_kind_stays_classic(groups: MixedGroups, foo: Uuid) -> None:
    groups.new_classic_member()
    groups.classic.protocol = "connect"
    assert groups.refusal(lambda: groups.join("b", ["foo"]))[0] is ErrorCode.GROUP_ID_NOT_FOUND


def test_empty_groups_change_type_freely() -> None:
    groups = MixedGroups(group_consumer_migration_policy="disabled")
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.heartbeat("a", -1)
    groups.classic_join("")
    assert groups.written[-2] == records.COMMON.epoch_gone(GROUP)
    assert groups.classic.state is EMPTY
    groups.reload()
    assert groups.classic.state is EMPTY
    assert assigned(groups.join("b", ["foo"])) == {foo: [0, 1]}
    assert groups.written[0] == classic_group_gone(GROUP)


def test_an_administrator_removes_members_of_either_protocol(groups: MixedGroups, foo: Uuid) -> None:
    old = groups.new_classic_member()
    groups.join("b", ["foo"], instance_id="one")
    answer = groups.classic_leave(
        MemberIdentity(member_id="", group_instance_id="one"),
        MemberIdentity(member_id=old, group_instance_id=None),
        MemberIdentity(member_id="nobody", group_instance_id=None),
        MemberIdentity(member_id="c", group_instance_id="one"),
        MemberIdentity(member_id="", group_instance_id="two"),
    )
    assert [member.error_code for member in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.group.members == {}


def test_a_classic_member_of_a_consumer_group_names_only_so_many_topics(groups: MixedGroups, foo: Uuid) -> None:
    groups.join("a", ["foo"])
    names = tuple(f"topic-{number}" for number in range(MAX_TOPIC_NAMES))
    member_id = groups.classic_join("").answer.member_id
    for topics in (names, ("foo", *names)):
        code, message = groups.refusal(lambda topics=topics: groups.classic_join(member_id, topics=topics).answer)  # type: ignore[misc]
        assert code is ErrorCode.INVALID_REQUEST
        assert message.endswith("at most 20,000 topics by name, not to 20,001.")

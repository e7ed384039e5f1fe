"""Tests classic groups, record by record: the records of each step, and the answers."""

from __future__ import annotations

import pytest

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rendezvous import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator.group.classic.stored import NOTHING_STORED
from coordinator.group.records import GROUP_METADATA_VERSION, GroupRecord
from protocol.coordinator_records.classic_group import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.join_group import JoinGroupResponseMember
from protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.driver import START_MS
from tests.coordinator.group.classic.world import ClassicGroups
from tests.coordinator.group.world import GROUP


def record(value: GroupMetadataValue | None) -> GroupRecord:
    return GroupRecord(GroupMetadataKey(group=GROUP), value, GROUP_METADATA_VERSION if value is not None else 0)


def empty(generation: int, at_ms: int, protocol_type: str = "consumer") -> GroupRecord:
    return record(
        GroupMetadataValue(
            protocol_type=protocol_type,
            generation=generation,
            protocol=None,
            leader=None,
            current_state_timestamp=at_ms,
            members=[],
        )
    )


def test_a_group_is_written_as_its_first_member_comes() -> None:
    groups = ClassicGroups()
    first = groups.join()
    assert first.records == [empty(0, START_MS, protocol_type="")]
    assert first.waits
    assert groups.join().records == []
    assert groups.classic.state is PREPARING_REBALANCE


def test_the_leaders_assignment_writes_the_generation_and_ends_everyones_wait() -> None:
    groups = ClassicGroups()
    requests = [groups.join(client_id="one"), groups.join(client_id="two", rebalance_ms=20_000)]
    assert groups.advance(6_000) == []
    one, two = (request.answer.member_id for request in requests)
    assert requests[0].answer.members == [
        JoinGroupResponseMember(member_id=one, metadata=b"metadata"),
        JoinGroupResponseMember(member_id=two, metadata=b"metadata"),
    ]
    assert (requests[1].answer.leader, requests[1].answer.members) == (one, [])
    follower = groups.sync(two)
    assert follower.waits
    assert follower.records == []
    leader = groups.sync(one, 1, {one: b"a", two: b"b"})
    members = [
        MemberMetadata(
            member_id=one,
            client_id="one",
            client_host="/10.0.0.1",
            rebalance_timeout=30_000,
            session_timeout=10_000,
            subscription=b"metadata",
            assignment=b"a",
        ),
        MemberMetadata(
            member_id=two,
            client_id="two",
            client_host="/10.0.0.1",
            rebalance_timeout=20_000,
            session_timeout=10_000,
            subscription=b"metadata",
            assignment=b"b",
        ),
    ]
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=one,
        current_state_timestamp=START_MS + 6_000,
        members=members,
    )
    assert leader.records == [record(value)]
    assert leader.answer == SyncGroupResponse(
        error_code=0, protocol_type="consumer", protocol_name="range", assignment=b"a"
    )
    assert follower.answer.assignment == b"b"
    assert groups.classic.state is STABLE


def test_a_member_without_assignment_gets_an_empty_one() -> None:
    groups = ClassicGroups()
    requests = [groups.join(), groups.join()]
    groups.advance(6_000)
    one, two = (request.answer.member_id for request in requests)
    written = groups.sync(one, 1, {one: b"a"}).records
    value = written[0].value  # type: ignore[union-attr]
    assert isinstance(value, GroupMetadataValue)
    assert [member.assignment for member in value.members] == [b"a", b""]
    assert groups.sync(two).answer.assignment == b""


def test_assignments_too_large_for_a_record_are_refused_and_the_members_rebalance() -> None:
    groups = ClassicGroups(max_record_bytes=1_000)
    requests = [groups.join(), groups.join()]
    groups.advance(6_000)
    one, two = (request.answer.member_id for request in requests)
    follower = groups.sync(two)
    leader = groups.sync(one, 1, {one: b"a" * 1_000, two: b""})
    assert leader.records == []
    assert {request.answer.error_code for request in (leader, follower)} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert groups.classic.state is PREPARING_REBALANCE


def test_the_group_is_written_empty_when_the_last_member_leaves() -> None:
    groups = ClassicGroups()
    one, two = groups.stable(2)
    requests = groups.leave(one, two)
    assert requests.records == [empty(2, groups.now_ms)]
    assert [member.error_code for member in requests.answer.members] == [0, 0]
    assert groups.classic.state is EMPTY
    assert groups.classic.protocol == "consumer"


def test_the_group_is_written_empty_when_the_last_session_expires() -> None:
    groups = ClassicGroups()
    groups.stable(1)
    assert groups.advance(9_999) == []
    assert groups.advance(1) == [empty(2, groups.now_ms)]


def test_a_group_that_was_empty_begins_with_a_delay_again() -> None:
    groups = ClassicGroups()
    (one,) = groups.stable(1)
    groups.leave(one)
    again = groups.join()
    assert again.records == []
    groups.advance(2_999)
    assert again.waits
    groups.advance(1)
    assert again.answer.generation_id == 3


def test_the_delay_is_no_longer_than_the_rebalance_timeout() -> None:
    groups = ClassicGroups()
    first = groups.join(rebalance_ms=7_000)
    for _ in range(3):
        groups.advance(2_400)
        groups.join(rebalance_ms=7_000)
    assert not first.waits


def test_the_strategy_most_like_best_is_chosen_among_those_all_can_follow() -> None:
    groups = ClassicGroups()
    requests = [
        groups.join(strategies=("sticky", "range")),
        groups.join(strategies=("range", "sticky", "custom")),
        groups.join(strategies=("range", "sticky")),
    ]
    groups.advance(6_000)
    assert {request.answer.protocol_name for request in requests} == {"range"}


def test_a_request_that_is_sent_again_takes_the_place_of_the_one_that_waits() -> None:
    groups = ClassicGroups()
    one, two = groups.stable(2)
    first = groups.join(one)
    second = groups.join(one)
    assert first.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    groups.join(two)
    assert second.answer.generation_id == 2


def test_a_thousand_members_join_one_generation() -> None:
    groups = ClassicGroups()
    ids = groups.stable(1_000)
    assert len(groups.classic.members) == 1_000
    assert groups.classic.state is STABLE
    assert groups.sync(ids[-1]).answer.assignment == f"assignment of {ids[-1]}".encode()


def test_a_group_whose_first_record_is_not_applied_is_not_there() -> None:
    groups = ClassicGroups()
    groups.carry_out = lambda result: None  # type: ignore[method-assign]
    groups.join()
    assert groups.shard.state.groups == {}


def test_a_generation_is_stored_with_its_record_and_not_before() -> None:
    groups = ClassicGroups()
    first = groups.join()
    groups.advance(6_000)
    member_id = first.answer.member_id
    assert groups.classic.generation == 1
    assert groups.classic.stored == NOTHING_STORED._replace(since_ms=START_MS)
    groups.sync(member_id, 1, {member_id: b"a"})
    assert groups.classic.stored.generation == 1
    assert groups.classic.stored.members[member_id].assignment == b"a"


def test_a_rebalance_leaves_the_stored_generation_as_it_was() -> None:
    groups = ClassicGroups()
    (member_id,) = groups.stable()
    stored = groups.classic.stored
    groups.join()
    assert groups.classic.state is PREPARING_REBALANCE
    assert groups.classic.stored is stored
    group = groups.loaded().state.group_of(GROUP, ClassicGroup)
    assert (group.state, list(group.members)) == (STABLE, [member_id])


def test_members_wait_on_if_the_assignments_cannot_be_appended() -> None:
    groups = ClassicGroups()
    asked = [groups.join(client_id=name) for name in ("one", "two")]
    groups.advance(10_000)
    one, two = (pending.answer.member_id for pending in asked)
    waiting = groups.sync(two)
    groups.append_fails = lambda: True
    assert groups.sync(one, 1, {one: b"a", two: b"b"}).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting.waits
    assert groups.classic.state is COMPLETING_REBALANCE
    groups.append_fails = lambda: False
    assert groups.sync(one, 1, {one: b"a", two: b"b"}).answer.assignment == b"a"
    assert waiting.answer.assignment == b"b"
    assert groups.classic.state is STABLE


def test_a_group_that_cannot_be_created_is_not_there() -> None:
    groups = ClassicGroups()
    groups.append_fails = lambda: True
    assert groups.join().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.shard.state.groups == {}
    assert groups.shard.next_deadline_ms() is None


def test_a_member_commits_no_offset_between_the_join_and_the_sync() -> None:
    groups = ClassicGroups()
    joined = groups.join()
    groups.advance(10_000)
    member_id = joined.answer.member_id
    assert groups.classic.state is COMPLETING_REBALANCE

    def check() -> None:
        groups.classic.check_offset_commit(member_id, None, 1, 9, transactional=False)

    with pytest.raises(KafkaError) as caught:
        check()
    assert caught.value.code is ErrorCode.REBALANCE_IN_PROGRESS
    groups.classic.check_offset_commit(member_id, None, 1, 9, transactional=True)
    groups.sync(member_id, 1, {member_id: b"all"})
    check()


def test_each_coordinator_that_loads_a_static_member_gives_it_its_whole_session() -> None:
    """As GroupMetadataManager.onLoaded: a coordinator that moves more often than sessions end keeps silent members."""
    groups = ClassicGroups()
    (member_id,) = groups.stable(instance_id="static", session_ms=45_000, version=5)
    for _ in range(5):
        groups.advance(40_000)
        groups.reload()
        assert list(groups.classic.members) == [member_id]
    groups.advance(44_999)
    assert list(groups.classic.members) == [member_id]
    groups.advance(1)
    assert list(groups.classic.members) == []

"""Tests static members: they leave for a while, and come back with another member id; no other member takes their place
meanwhile."""

from __future__ import annotations

import pytest

from coordinator.group.consumer import records
from protocol.errors import ErrorCode
from protocol.types import Uuid
from tests.coordinator.group.world import GROUP, SOON_MS, Groups, assigned


@pytest.fixture
def groups() -> Groups:
    return Groups()


@pytest.fixture
def foo(groups: Groups) -> Uuid:
    """Returns a group with a topic of two partitions, one of which static member "a" has, the other "b"."""
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"], instance_id="one")
    groups.advance(SOON_MS)
    groups.join("b", ["foo"])
    groups.heartbeat("a", 2, owned={foo: [0, 1]}, instance_id="one")
    groups.heartbeat("a", 2, owned={foo: [0]}, instance_id="one")
    groups.heartbeat("b", 3)
    return foo


def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions(groups: Groups, foo: Uuid) -> None:
    left = groups.heartbeat("a", -2, instance_id="one")
    assert (left.member_id, left.member_epoch) == ("a", -2)
    away = groups.member("a")
    assert groups.written == [records.COMMON.current(GROUP, away)]
    assert (away.member_epoch, away.assigned, away.pending_revocation) == (-2, {foo: {0: 0}}, {})
    assert assigned(groups.heartbeat("b", 3, owned={foo: [1]}, topics=["foo"], rebalance_timeout_ms=1)) == {foo: [1]}


def test_it_comes_back_under_another_member_id_without_a_rebalance(groups: Groups, foo: Uuid) -> None:
    groups.heartbeat("a", -2, instance_id="one")
    away, target = groups.member("a"), groups.group.target("a")
    back = groups.join("c", ["foo"], instance_id="one")
    assert (back.member_id, back.member_epoch, assigned(back)) == ("c", 3, {foo: [0]})
    successor = away._replace(member_id="c", member_epoch=0, previous_member_epoch=0)
    assert groups.written == [
        *records.COMMON.all_of_member_gone(GROUP, "a"),
        records.COMMON.member(GROUP, successor),
        records.COMMON.target(GROUP, "c", target),
        records.COMMON.current(GROUP, successor),
        records.COMMON.current(GROUP, groups.member("c")),
    ]
    assert groups.group.epoch == 3
    assert list(groups.group.members) == ["b", "c"]
    assert groups.group.static_members == {"one": "c"}


def test_with_another_subscription_it_causes_a_rebalance(groups: Groups, foo: Uuid) -> None:
    bar = groups.create_topic("bar", 1)
    groups.advance(SOON_MS)
    groups.heartbeat("a", -2, instance_id="one")
    back = groups.join("c", ["foo", "bar"], instance_id="one")
    assert (back.member_epoch, groups.group.epoch) == (4, 4)
    assert assigned(back) == {foo: [0], bar: [0]}


def test_a_static_member_that_comes_back_to_a_full_group_needs_no_room() -> None:
    groups = Groups(group_consumer_max_size=1)
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"], instance_id="one")
    groups.heartbeat("a", -2, instance_id="one")
    assert groups.refusal(lambda: groups.join("c", ["foo"]))[0] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.join("c", ["foo"], instance_id="one").member_epoch == 2


def test_an_instance_id_in_use_is_not_given_away(groups: Groups, foo: Uuid) -> None:
    assert groups.refusal(lambda: groups.join("c", ["foo"], instance_id="one")) == (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        "Static member c with instance id one cannot join the group because the instance id is owned by a member.",
    )


def test_the_one_who_was_replaced_is_fenced(groups: Groups, foo: Uuid) -> None:
    groups.heartbeat("a", -2, instance_id="one")
    groups.join("c", ["foo"], instance_id="one")
    for epoch in (3, -1, -2):
        assert groups.refusal(lambda epoch=epoch: groups.heartbeat("a", epoch, instance_id="one")) == (  # type: ignore[misc]
            ErrorCode.FENCED_INSTANCE_ID,
            "Static member a with instance id one was fenced by member c.",
        )


def test_an_unknown_instance_id_is_no_member(groups: Groups, foo: Uuid) -> None:
    for epoch in (3, -1, -2):
        code, message = groups.refusal(lambda epoch=epoch: groups.heartbeat("a", epoch, instance_id="two"))  # type: ignore[misc]
        assert (code, message) == (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id two is unknown.")


def test_who_does_not_come_back_in_time_is_gone(groups: Groups, foo: Uuid) -> None:
    groups.heartbeat("a", -2, instance_id="one")
    groups.advance(20_000)
    groups.heartbeat("b", 3)
    groups.advance(25_000)
    assert list(groups.group.members) == ["b"]
    assert groups.group.static_members == {}
    assert assigned(groups.heartbeat("b", 3)) == {foo: [0, 1]}


def test_a_static_member_may_leave_for_good(groups: Groups, foo: Uuid) -> None:
    groups.heartbeat("a", -1, instance_id="one")
    assert groups.written == [
        *records.COMMON.all_of_member_gone(GROUP, "a"),
        records.COMMON.epoch(GROUP, 4, groups.watch.group_hash(["foo"])),
    ]


def test_who_returns_may_commit_with_any_epoch_until_it_gets_its_own(groups: Groups, foo: Uuid) -> None:
    groups.heartbeat("a", -2, instance_id="one")
    groups.join("c", ["foo"], instance_id="one")
    check = groups.group.check_offset_commit("c", "one", 0, 9, transactional=False)
    check("foo", foo, 0)


def test_a_dynamic_member_may_not_stay_away(groups: Groups, foo: Uuid) -> None:
    assert groups.refusal(lambda: groups.heartbeat("b", -2))[0] is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("is_away", [False, True])
def test_each_coordinator_that_loads_a_static_member_gives_it_its_whole_session(
    groups: Groups, foo: Uuid, is_away: bool
) -> None:
    """As GroupMetadataManager.onLoaded: a coordinator that moves more often than sessions end keeps silent members,
    with their partitions."""
    if is_away:
        groups.heartbeat("a", -2, instance_id="one")
    for _ in range(5):
        groups.advance(40_000)
        groups.reload()
        assert [*groups.member("a").assigned[foo]] == [0]
    groups.advance(44_999)
    assert "a" in groups.group.members
    groups.advance(1)
    assert "a" not in groups.group.members

"""Tests static members of streams groups, which keep their tasks over a restart."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.streams.world import StreamsGroups, active, codes, topology
from tests.coordinator.group.world import SOON_MS


def settled() -> StreamsGroups:
    groups = StreamsGroups()
    groups.settled("m1", instance_id="i1")
    return groups


def refused(ask: object) -> ErrorCode:
    assert callable(ask)
    with pytest.raises(KafkaError) as error:
        ask()
    return error.value.code


def test_a_member_that_returns_has_its_tasks_at_once_and_the_epoch_stays() -> None:
    groups = settled()
    heard = groups.beat("m1", -2, instance_id="i1")
    assert (groups.kinds, heard.response.member_epoch) == (["CurrentMemberAssignment"], -2)
    heard = groups.enter("m2", instance_id="i1", process_id="m1")
    assert groups.kinds == [
        "-CurrentMemberAssignment", "-TargetAssignmentMember", "-MemberMetadata",
        "MemberMetadata", "TargetAssignmentMember", "CurrentMemberAssignment", "CurrentMemberAssignment",
    ]  # fmt: skip
    assert (active(heard), heard.response.member_epoch, codes(heard)) == ({"0": [0, 1]}, 2, [])
    assert list(groups.streams.members) == ["m2"]
    assert groups.streams.static_members == {"i1": "m2"}


def test_a_return_with_another_process_is_a_change() -> None:
    groups = settled()
    groups.beat("m1", -2, instance_id="i1")
    groups.now_ms += SOON_MS
    assert groups.enter("m2", instance_id="i1").response.member_epoch == 3


def test_a_member_away_is_removed_when_its_session_is_over() -> None:
    groups = settled()
    groups.beat("m1", -2, instance_id="i1")
    groups.advance(45_000)
    assert (groups.streams.members, groups.streams.static_members) == ({}, {})


def test_an_instance_id_in_use_is_not_released() -> None:
    groups = settled()
    assert refused(lambda: groups.enter("m2", instance_id="i1")) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert refused(lambda: groups.beat("m2", 2, instance_id="i1")) is ErrorCode.FENCED_INSTANCE_ID
    assert refused(lambda: groups.beat("m1", 2, instance_id="i2")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: groups.beat("m2", -1, instance_id="i1")) is ErrorCode.FENCED_INSTANCE_ID


def test_a_member_that_changes_its_instance_id_leaves_no_stale_owner() -> None:
    groups = settled()
    groups.now_ms += SOON_MS
    groups.enter("m1", instance_id="i2")
    assert groups.streams.static_members == {"i2": "m1"}
    groups.beat("m1", -1, instance_id="i2")
    groups.enter("m2", instance_id="i1")
    assert groups.streams.static_members == {"i1": "m2"}


def test_a_full_group_takes_a_static_member_back() -> None:
    groups = StreamsGroups(group_streams_max_size=1)
    groups.settled("m1", topology(), instance_id="i1")
    groups.beat("m1", -2, instance_id="i1")
    groups.enter("m2", instance_id="i1")
    assert list(groups.streams.members) == ["m2"]

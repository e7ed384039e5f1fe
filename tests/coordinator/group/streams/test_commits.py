"""Tests offsets of streams groups: commits and fetches of members with present and outdated epochs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.group.group import any_partition
from protocol.errors import ErrorCode, KafkaError
from protocol.types import NO_UUID
from tests.coordinator.group.streams.world import DELAY_MS, StreamsGroups
from tests.coordinator.group.world import SOON_MS


def refused(ask: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        ask()
    return error.value.code


@pytest.fixture
def groups() -> StreamsGroups:
    """Returns a group whose member m1 has task 0_0 since epoch 3, and task 0_1 of no member."""
    world = StreamsGroups()
    world.enter("m1")
    world.enter("m2")
    world.advance(DELAY_MS)
    world.beat("m1", 1)
    world.now_ms += SOON_MS
    world.beat("m2", -1)
    world.beat("m1", 3)
    return world


def test_the_present_epoch_may_commit_any_partition(groups: StreamsGroups) -> None:
    group = groups.streams
    assert group.check_offset_commit("m1", None, 4, 9, transactional=False) is any_partition


def test_an_older_epoch_may_commit_tasks_that_the_member_has_had_since(groups: StreamsGroups) -> None:
    check = groups.streams.check_offset_commit("m1", None, 3, 9, transactional=False)
    check("topic", NO_UUID, 0)
    assert refused(lambda: check("topic", NO_UUID, 1)) is ErrorCode.STALE_MEMBER_EPOCH  # since epoch 4
    assert refused(lambda: check("other", NO_UUID, 0)) is ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: check("topic", NO_UUID, 7)) is ErrorCode.STALE_MEMBER_EPOCH


def test_wrong_members_epochs_and_versions_are_refused(groups: StreamsGroups) -> None:
    def commit(member_id: str, epoch: int, version: int = 9, *, transactional: bool = False) -> Callable[[], object]:
        return lambda: groups.streams.check_offset_commit(member_id, None, epoch, version, transactional=transactional)

    assert refused(commit("m2", 4)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(commit("", -1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(commit("m1", 5)) is ErrorCode.STALE_MEMBER_EPOCH
    assert refused(commit("m1", 4, 8)) is ErrorCode.UNSUPPORTED_VERSION
    assert commit("m1", 4, 3, transactional=True)() is any_partition
    assert commit("", -1, 3, transactional=True)() is any_partition
    groups.beat("m1", -1)
    assert commit("", -1)() is any_partition


def test_a_fetch_with_a_member_needs_its_epoch(groups: StreamsGroups) -> None:
    group = groups.streams
    group.check_offset_fetch(None, -1)
    group.check_offset_fetch("m1", 4)
    assert refused(lambda: group.check_offset_fetch("m1", 3)) is ErrorCode.STALE_MEMBER_EPOCH
    assert refused(lambda: group.check_offset_fetch("m2", 3)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_topics_that_the_topology_reads_are_kept_while_there_are_members(groups: StreamsGroups) -> None:
    assert groups.streams.is_subscribed_to("topic")
    assert not groups.streams.is_subscribed_to("other")
    groups.beat("m1", -1)
    assert not groups.streams.is_subscribed_to("topic")

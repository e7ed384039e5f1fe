"""Tests members that reported their tasks again because an answer was lost on its way."""

from __future__ import annotations

from tests.coordinator.group.streams.world import StreamsGroups, active
from tests.coordinator.group.world import SOON_MS


def test_a_member_that_missed_its_tasks_gets_them_again() -> None:
    groups = StreamsGroups()
    assert active(groups.settled("m1")) == {"0": [0, 1]}  # lost
    heard = groups.beat("m1", 2, owned={})
    assert (active(heard), heard.response.member_epoch, groups.kinds) == ({"0": [0, 1]}, 2, [])
    assert active(groups.beat("m1", 2, owned={"0": [0, 1]})) is None


def test_a_member_that_missed_what_to_give_up_is_told_again() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    groups.now_ms += SOON_MS
    groups.enter("m2")
    assert active(groups.beat("m1", 2)) == {"0": [0]}  # lost
    assert active(groups.beat("m1", 2, owned={"0": [0, 1]})) == {"0": [0]}
    assert active(groups.beat("m1", 2, owned={"0": [0]})) is None
    assert active(groups.beat("m2", 3)) == {"0": [1]}

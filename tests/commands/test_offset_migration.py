"""Tests the steps of a migration of a group's offsets."""

from __future__ import annotations

from commands.zookeeper.migration import ADVANCE, AHEAD, COPY, GONE, NOTHING, SAME, plan
from protocol.types import TopicPartition


def test_the_larger_offset_counts_and_a_second_time_nothing_is_left() -> None:
    there = [TopicPartition("t", index) for index in range(5)]
    gone = TopicPartition("gone", 0)
    source = {there[0]: 5, there[1]: 5, there[2]: 5, there[3]: 5, gone: 5}
    target = {there[1]: 4, there[2]: 5, there[3]: 6, there[4]: 7}
    steps = plan(source, target, there)
    assert [step.action for step in steps] == [GONE, COPY, ADVANCE, SAME, AHEAD, NOTHING]
    after = target | {step.partition: step.source or 0 for step in steps if step.writes}
    assert not [step for step in plan(source, after, there) if step.writes]

"""Tests that each named topic is answered once, even if it is named several times."""

from __future__ import annotations

from broker.dispatch.absent_partitions import merged
from protocol.messages.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic


def topic(name: str, *indexes: int) -> OffsetDeleteResponseTopic:
    partitions = [OffsetDeleteResponsePartition(partition_index=index, error_code=0) for index in indexes]
    return OffsetDeleteResponseTopic(name=name, partitions=partitions)


def test_what_all_is_there_is_answered_as_the_coordinator_has_it() -> None:
    answered = [topic("a", 0), topic("a", 1)]
    assert merged([], answered) == answered


def test_what_is_not_there_comes_first_and_loses_no_answer() -> None:
    absent = [topic("a", 9), topic("b"), topic("a", 8)]
    assert merged(absent, [topic("c", 0), topic("a", 1)]) == [topic("a", 9, 8, 1), topic("b"), topic("c", 0)]

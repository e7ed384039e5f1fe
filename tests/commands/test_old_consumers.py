"""Consumers that meet in ZooKeeper: who reads what, and what a migration of their offsets does."""

from __future__ import annotations

import pytest

from commands.old_consumers import ADVANCE, AHEAD, COPY, GONE, NOTHING, SAME, OldMember, member, owners_by_range, plan
from protocol.types import TopicPartition


def test_threads_get_equal_runs_and_the_first_one_more() -> None:
    members = [OldMember("b", "static", {"t": 1}), OldMember("a", "static", {"t": 2})]
    owners = owners_by_range(members, {"t": [4, 3, 2, 1, 0]})
    assert [owners[TopicPartition("t", index)] for index in range(5)] == ["a-0", "a-0", "a-1", "a-1", "b-0"]


def test_more_threads_than_partitions_leave_some_with_nothing() -> None:
    owners = owners_by_range([OldMember("a", "static", {"t": 3})], {"t": [0, 1]})
    assert set(owners.values()) == {"a-0", "a-1"}


def test_patterns_match_whole_names_and_no_internal_topic() -> None:
    topics = {"orders": [0], "orders-old": [0], "__consumer_offsets": [0], "other": [0]}
    white = owners_by_range([OldMember("a", "white_list", {"orders,oth.*": 1})], topics)
    assert {one.topic for one in white} == {"orders", "other"}
    black = owners_by_range([OldMember("a", "black_list", {"orders": 1})], topics)
    assert {one.topic for one in black} == {"orders-old", "other"}


def test_a_member_is_read_as_it_registered() -> None:
    data = b'{"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"1"}'
    assert member("a", data) == OldMember("a", "static", {"t": 2})
    for wrong in (b"", b"[]", b'{"subscription":{"t":"2"}}'):
        with pytest.raises(ValueError):
            member("a", wrong)


def test_the_larger_offset_counts_and_a_second_time_nothing_is_left() -> None:
    there = [TopicPartition("t", index) for index in range(5)]
    gone = TopicPartition("gone", 0)
    source = {there[0]: 5, there[1]: 5, there[2]: 5, there[3]: 5, gone: 5}
    target = {there[1]: 4, there[2]: 5, there[3]: 6, there[4]: 7}
    steps = plan(source, target, there)
    assert [step.action for step in steps] == [GONE, COPY, ADVANCE, SAME, AHEAD, NOTHING]
    after = target | {step.partition: step.source or 0 for step in steps if step.writes}
    assert not [step for step in plan(source, after, there) if step.writes]

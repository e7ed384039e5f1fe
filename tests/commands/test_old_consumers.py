"""Tests consumers that coordinate through ZooKeeper: their registration and their assignment."""

from __future__ import annotations

import pytest

from commands.zookeeper.assignors import STRATEGIES, owners_by_range, owners_by_round_robin
from commands.zookeeper.consumers import OldMember, member
from protocol.types import TopicPartition


def test_threads_get_equal_runs_and_the_first_one_more() -> None:
    members = [OldMember("b", "static", {"t": 1}), OldMember("a", "static", {"t": 2})]
    owners = owners_by_range(members, {"t": [4, 3, 2, 1, 0]})
    assert [owners[TopicPartition("t", index)] for index in range(5)] == ["a-0", "a-0", "a-1", "a-1", "b-0"]


def test_more_threads_than_partitions_leave_some_with_nothing() -> None:
    owners = owners_by_range([OldMember("a", "static", {"t": 3})], {"t": [0, 1]})
    assert set(owners.values()) == {"a-0", "a-1"}


def test_threads_are_sorted_as_texts() -> None:
    owners = owners_by_range([OldMember("a", "static", {"t": 11})], {"t": range(11)})
    assert [owners[TopicPartition("t", index)] for index in (1, 2, 3)] == ["a-1", "a-10", "a-2"]


def test_round_robin_gives_partitions_of_all_topics_in_turn() -> None:
    members = [OldMember(name, "static", {"t": 1, "u": 1}) for name in "ab"]
    owners = owners_by_round_robin(members, {"t": [0, 1, 2], "u": [0, 1, 2]})
    # by their hash codes all of t come before u
    assert [owners[TopicPartition("t", index)] for index in range(3)] == ["a-0", "b-0", "a-0"]
    assert [owners[TopicPartition("u", index)] for index in range(3)] == ["b-0", "a-0", "b-0"]


def test_round_robin_passes_over_threads_that_do_not_read_a_topic() -> None:
    members = [OldMember("a", "static", {"t": 1}), OldMember("b", "static", {"t": 1, "u": 1})]
    owners = owners_by_round_robin(members, {"t": [0, 1], "u": [0, 1]})
    assert {owners[TopicPartition("u", index)] for index in (0, 1)} == {"b-0"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_without_members_owns_nothing(strategy: str) -> None:
    assert STRATEGIES[strategy]([], {"t": [0]}) == {}


def test_patterns_match_whole_names_and_no_internal_topic() -> None:
    topics = {"orders": [0], "orders-old": [0], "__consumer_offsets": [0], "other": [0]}
    white = owners_by_range([OldMember("a", "white_list", {"orders,oth.*": 1})], topics)
    assert {one.topic for one in white} == {"orders", "other"}
    black = owners_by_range([OldMember("a", "black_list", {"orders": 1})], topics)
    assert {one.topic for one in black} == {"orders-old", "other"}


def test_a_pattern_that_only_java_knows_is_an_error() -> None:
    with pytest.raises(ValueError, match="consumer a: pattern"):
        OldMember("a", "white_list", {"(?!other).*": 1}).threads({"t"})


def test_a_member_is_read_as_it_registered() -> None:
    one = OldMember("a", "static", {"t": 2})
    data = b'{"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"1"}'
    assert one.registration(1) == data
    assert member("a", data) == one
    for wrong in (b"", b"[]", b'{"subscription":{"t":"2"}}'):
        with pytest.raises(ValueError):
            member("a", wrong)


def test_a_member_watches_its_group_the_brokers_and_its_topics() -> None:
    above = ["/consumers/g/ids", "/brokers/ids"]
    static = OldMember("a", "static", {"u": 1, "t": 1})
    assert static.watched("g") == [*above, "/brokers/topics/t", "/brokers/topics/u"]
    assert OldMember("a", "black_list", {"t": 1}).watched("g") == [*above, "/brokers/topics"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"7",
        b"[" * 100_000,
        b"\xff",
        b'{"subscription": []}',
        b'{"subscription": {"t": "1"}}',
        b'{"subscription": {"t": true}}',
        b'{"subscription": {"t": 1000000000}}',
    ],
)
def test_a_member_of_nonsense_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        member("c", data)

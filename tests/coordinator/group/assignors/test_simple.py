"""Tests SimpleAssignor: its properties, and examples from Kafka's tests."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group.assignors.simple import Subscriber, assign

T1, T2 = b"1" * 16, b"2" * 16


def names(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]


def test_nobody_gets_nothing() -> None:
    assert assign({}, {T1: {0}}, alike=True) == {}


def test_with_as_many_members_as_partitions_each_has_one() -> None:
    members = {name: Subscriber({T1}, {}) for name in names(3)}
    assigned = assign(members, {T1: {0, 1, 2}}, alike=True)
    assert sorted(sorted(assignment[T1]) for assignment in assigned.values()) == [[0], [1], [2]]


def test_members_that_subscribe_to_other_topics_get_those() -> None:
    members = {"a": Subscriber({T1}, {}), "b": Subscriber({T1, T2}, {}), "c": Subscriber({T2}, {})}
    assigned = assign(members, {T1: {0, 1}, T2: {0}}, alike=False)
    assert assigned["a"].keys() == {T1}
    assert assigned["c"] == {T2: frozenset({0})}
    assert assigned["b"][T2] == frozenset({0})


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 12), st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_every_partition_is_read_and_members_are_busy_alike(before: int, had: int, after: int, has: int) -> None:
    first = assign({name: Subscriber({T1}, {}) for name in names(before)}, {T1: range(had)}, alike=True)
    members = {name: Subscriber({T1}, first.get(name, {})) for name in names(after)}
    assigned = assign(members, {T1: range(has)}, alike=True)
    readers = Counter(index for assignment in assigned.values() for index in assignment.get(T1, ()))
    assert set(readers) == set(range(has))
    sizes = [len(assignment.get(T1, ())) for assignment in assigned.values()]
    if has:
        sharing = -(-after // has)
        assert max(readers.values()) <= sharing
        assert max(sizes) <= -(-sharing * has // after)

"""Tests the assignors: each partition has exactly one subscriber as its owner, evenly, with as few moves as
possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group.assignment import Assignment, Assignor, GroupSpec, MemberSpec
from coordinator.group.assignors.builtin import ASSIGNORS, configured
from coordinator.group.assignors.by_range import assign_ranges
from coordinator.group.assignors.uniform import assign_uniformly
from protocol.types import Uuid

FOO, BAR, BAZ = (number.to_bytes(16, "big") for number in (1, 2, 3))
TOPICS = [number.to_bytes(16, "big") for number in range(1, 7)]

Subscriptions = Mapping[str, Sequence[Uuid]]
Counts = Mapping[Uuid, int]


def partition_total(assignment: Assignment) -> int:
    """Returns the number of partitions in an assignment."""
    return sum(map(len, assignment.values()))


def spec(
    subscriptions: Subscriptions, counts: Counts, before: Mapping[str, Assignment] | None = None, **static: str
) -> GroupSpec:
    """Returns a group whose members had the assignment `before`; `static` has instance ids by member id."""
    had = {member_id: (before or {}).get(member_id, {}) for member_id in subscriptions}
    owners: dict[Uuid, dict[int, str]] = {}
    for member_id, assignment in had.items():
        for topic_id, partitions in assignment.items():
            owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))
    members = {
        member_id: MemberSpec(frozenset(topics), had[member_id], static.get(member_id))
        for member_id, topics in subscriptions.items()
    }
    alike = len({member.topics for member in members.values()}) < 2
    return GroupSpec(members, counts, alike, owners)


def numbers(assigned: Mapping[str, Assignment], topic_id: Uuid = FOO) -> dict[str, list[int]]:
    return {member_id: sorted(assignment.get(topic_id, ())) for member_id, assignment in assigned.items()}


def check_valid(group: GroupSpec, assigned: Mapping[str, Assignment]) -> None:
    """Checks that each partition of each subscribed topic has exactly one owner, which subscribes to it."""
    owned = [
        (topic_id, index)
        for member_id, assignment in assigned.items()
        for topic_id, partitions in assignment.items()
        for index in partitions
        if topic_id in group.members[member_id].topics
    ]
    subscribed = {topic_id for member in group.members.values() for topic_id in member.topics}
    expected = [(topic_id, index) for topic_id in subscribed for index in range(group.partition_counts[topic_id])]
    assert sorted(owned) == sorted(expected)
    assert len(owned) == sum(map(partition_total, assigned.values()))


counts_of_topics = st.fixed_dictionaries({topic_id: st.integers(1, 9) for topic_id in TOPICS})
names = st.lists(st.text("abcdefgh", min_size=1, max_size=3), min_size=1, max_size=7, unique=True)
some_topics = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=4, unique=True)


@st.composite
def lives(draw: st.DrawFn, *, alike: bool) -> list[tuple[Subscriptions, Counts]]:
    """Returns a group at several times."""
    topics = draw(some_topics)
    life: list[tuple[Subscriptions, Counts]] = []
    for _ in range(draw(st.integers(1, 4))):
        members = draw(names)
        life.append(
            (
                {member_id: topics if alike else draw(some_topics) for member_id in members},
                draw(counts_of_topics),
            )
        )
    return life


def grown(counts: Counts, before: Counts) -> Counts:
    """Returns topics with more partitions, because topics never lose partitions."""
    return {topic_id: max(count, before.get(topic_id, 0)) for topic_id, count in counts.items()}


@settings(max_examples=60, deadline=None)
@given(lives(alike=True) | lives(alike=False))
@pytest.mark.parametrize("assignor", list(ASSIGNORS.values()), ids=list(ASSIGNORS))
def test_every_partition_has_one_owner_who_subscribes_to_it(
    assignor: Assignor, life: list[tuple[Subscriptions, Counts]]
) -> None:
    assigned: Mapping[str, Assignment] = {}
    counts: Counts = {}
    for subscriptions, sizes in life:
        counts = grown(sizes, counts)
        group = spec(subscriptions, counts, assigned)
        assigned = assignor(group)
        check_valid(group, assigned)


@settings(max_examples=100, deadline=None)
@given(lives(alike=True))
def test_uniform_loads_differ_by_one_at_most(life: list[tuple[Subscriptions, Counts]]) -> None:
    assigned: Mapping[str, Assignment] = {}
    counts: Counts = {}
    for subscriptions, sizes in life:
        counts = grown(sizes, counts)
        assigned = assign_uniformly(spec(subscriptions, counts, assigned))
        loads = [partition_total(assigned[member_id]) for member_id in subscriptions]
        assert max(loads) - min(loads) <= 1


@settings(max_examples=100, deadline=None)
@given(lives(alike=False))
def test_uniform_leaves_nothing_that_one_move_would_even_out(life: list[tuple[Subscriptions, Counts]]) -> None:
    assigned: Mapping[str, Assignment] = {}
    counts: Counts = {}
    for subscriptions, sizes in life:
        counts = grown(sizes, counts)
        group = spec(subscriptions, counts, assigned)
        assigned = assign_uniformly(group)
        loads = {member_id: partition_total(assigned[member_id]) for member_id in subscriptions}
        for giver, assignment in assigned.items():
            for topic_id in assignment:
                for taker, member in group.members.items():
                    assert topic_id not in member.topics or loads[giver] - loads[taker] <= 1


@settings(max_examples=100, deadline=None)
@given(lives(alike=True) | lives(alike=False))
@pytest.mark.parametrize("assignor", list(ASSIGNORS.values()), ids=list(ASSIGNORS))
def test_nothing_moves_where_nothing_changed(assignor: Assignor, life: list[tuple[Subscriptions, Counts]]) -> None:
    subscriptions, counts = life[0]
    assigned = assignor(spec(subscriptions, counts))
    assert assignor(spec(subscriptions, counts, assigned)) == assigned


@settings(max_examples=100, deadline=None)
@given(lives(alike=True), st.data())
def test_only_what_a_member_leaves_behind_moves(life: list[tuple[Subscriptions, Counts]], data: st.DataObject) -> None:
    subscriptions, counts = life[0]
    assigned = assign_uniformly(spec(subscriptions, counts))
    gone = data.draw(st.sampled_from(sorted(subscriptions)))
    stay = {member_id: topics for member_id, topics in subscriptions.items() if member_id != gone}
    after = assign_uniformly(spec(stay, counts, assigned))
    for member_id in stay:
        for topic_id, partitions in assigned[member_id].items():
            assert partitions <= after[member_id][topic_id]


def test_uniform_moves_one_partition_to_a_third_member() -> None:
    before = assign_uniformly(spec({"a": [FOO], "b": [FOO]}, {FOO: 4}))
    assert numbers(before) == {"a": [0, 1], "b": [2, 3]}
    after = assign_uniformly(spec({"a": [FOO], "b": [FOO], "c": [FOO]}, {FOO: 4}, before))
    assert numbers(after) == {"a": [0, 1], "b": [2], "c": [3]}


def test_uniform_hands_new_partitions_to_those_with_fewest() -> None:
    before = {"a": {FOO: frozenset({0, 1})}, "b": {FOO: frozenset({2})}}
    after = assign_uniformly(spec({"a": [FOO], "b": [FOO]}, {FOO: 6}, before))
    assert numbers(after) == {"a": [0, 1, 3], "b": [2, 4, 5]}


def test_uniform_makes_no_chains_of_moves() -> None:
    after = assign_uniformly(spec({"a": [FOO], "b": [FOO, BAR], "c": [BAR, BAZ]}, {FOO: 4, BAR: 4, BAZ: 1}))
    assert {member_id: partition_total(assigned) for member_id, assigned in after.items()} == {"a": 2, "b": 3, "c": 4}


def test_a_member_without_topics_gets_nothing() -> None:
    for assignor in ASSIGNORS.values():
        after = assignor(spec({"a": [FOO], "b": []}, {FOO: 2}))
        assert numbers(after)["a"] == [0, 1]
        assert not after.get("b")


def test_a_group_without_members_or_topics_has_no_assignment() -> None:
    for assignor in ASSIGNORS.values():
        assert not assignor(GroupSpec({}, {}, True, {}))
        assert not any(assignor(spec({"a": []}, {})).values())


def test_ranges_of_topics_of_one_size_are_alike() -> None:
    after = assign_ranges(spec({"a": [FOO, BAR], "b": [FOO, BAR]}, {FOO: 3, BAR: 3}))
    assert numbers(after, FOO) == numbers(after, BAR) == {"a": [0, 1], "b": [2]}


def test_ranges_of_more_members_than_partitions_leave_some_idle() -> None:
    assert numbers(assign_ranges(spec({"c": [FOO], "b": [FOO], "a": [FOO]}, {FOO: 2}))) == {
        "a": [0],
        "b": [1],
        "c": [],
    }


def test_ranges_go_to_static_members_first_by_instance_id() -> None:
    members = {"a": [FOO], "z": [FOO], "m": [FOO]}
    assert numbers(assign_ranges(spec(members, {FOO: 3}, z="1", m="2"))) == {"z": [0], "m": [1], "a": [2]}


def test_assignors_may_be_configured_by_kafkas_classes() -> None:
    kafkas = "org.apache.kafka.coordinator.group.assignor."
    assert configured((f"{kafkas}RangeAssignor", "uniform")) == ("range", "uniform")
    assert configured(("com.example.Mine", f"{kafkas}UniformAssignor")) == ("uniform",)
    assert configured(("com.example.Mine",)) == ("uniform", "range")

"""Runs classic groups whose members join, die, stall, send wrong data and come back: the invariants hold after every
step."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from coordinator.group.classic.group import ClassicGroup, session_key
from coordinator.group.classic.rendezvous import EMPTY, STABLE
from protocol.consumer_protocol import ConsumerProtocolAssignment, read
from tests.coordinator.group.world import GROUP
from tests.simulation.classic_members import PARTITIONS, REBALANCE_MS, SESSION_MS, Coordinator, Member, Phase

STEPS = 400
FAILED_APPENDS = 0.05
QUIET_MS = 3 * (SESSION_MS + REBALANCE_MS)


def group_of(coordinator: Coordinator) -> ClassicGroup | None:
    group = coordinator.shard.state.groups.get(GROUP)
    assert group is None or isinstance(group, ClassicGroup)
    return group


def partitions_of(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    given = read(ConsumerProtocolAssignment, assignment)
    return [index for topic in given.assigned_partitions for index in topic.partitions]


def check_group(coordinator: Coordinator) -> None:
    """Checks the invariants of a group in every state."""
    group = group_of(coordinator)
    if group is None:
        return
    timers = coordinator.shard.state.timers
    assert (group.state is EMPTY) <= (not group.members)
    assert group.joining == sum(member.is_joining for member in group.members.values())
    assert group.pending_syncs.keys() <= group.members.keys()
    assert not group.pending_joins.keys() & group.members.keys()
    assert (group.leader in group.members) if group.members else group.leader is None
    assert group.static_members == {m.instance_id: m.member_id for m in group.members.values() if m.instance_id}
    for member_id in (*group.members, *group.pending_joins):
        excused = member_id in group.members and group.members[member_id].is_excused
        assert excused or session_key(GROUP, member_id) in timers, f"nobody watches {member_id}"
    if group.state is STABLE:
        owners = Counter(p for member in group.members.values() for p in partitions_of(member.assignment))
        assert all(count == 1 for count in owners.values()), "a partition has two owners in one generation"


def check_owners(members: list[Member]) -> None:
    """Checks that in one generation a partition has at most one owner among the live members."""
    owners = Counter((m.generation, p) for m in members if m.phase is Phase.STABLE for p in m.owned)
    assert all(count == 1 for count in owners.values())


def check_offsets(coordinator: Coordinator) -> None:
    """Checks that no acknowledged commit is lost."""
    stored = coordinator.positions(range(PARTITIONS))
    assert all(stored[partition] == offset for partition, offset in coordinator.committed.items())


def check_fold(coordinator: Coordinator) -> None:
    """Checks that a coordinator that loads the log gets the group as it was last written."""
    group = group_of(coordinator)
    if group is None or group.state not in (STABLE, EMPTY):
        return
    before = {member_id: member.assignment for member_id, member in group.members.items()}
    generation, leader = group.generation, group.leader
    loaded = coordinator.loaded().state.group_of(GROUP, ClassicGroup)
    assert {member_id: member.assignment for member_id, member in loaded.members.items()} == before
    assert (loaded.generation, loaded.leader) == (generation, leader)


def misbehave(random: Random, member: Member) -> None:
    if member.phase is Phase.DEAD:
        if random.random() < 0.3:
            member.come_back()
        return
    what = random.random()
    if what < 0.03:
        member.die()
    elif what < 0.05:
        member.leave()
    elif what < 0.10:
        member.next_ms += random.randrange(2 * SESSION_MS)
    elif what < 0.15:
        member.lie()


def step(random: Random, coordinator: Coordinator, members: list[Member]) -> None:
    member = random.choice(members)
    misbehave(random, member)
    if member.phase is not Phase.DEAD and coordinator.now_ms >= member.next_ms:
        member.act()
    if random.random() < 0.02:
        coordinator.reload()
    if random.random() < 0.3:
        coordinator.advance(random.randrange(2_000))


def settle(coordinator: Coordinator, members: list[Member]) -> None:
    """Runs without failures until every member has its part. A member that is fenced anyway comes back as a new
    process: a new coordinator doesn't know the last owner of an instance id in a rebalance, because no record has
    it."""
    coordinator.append_fails = lambda: False
    for member in members:
        member.next_ms = 0
    end_ms = coordinator.now_ms + QUIET_MS
    while coordinator.now_ms < end_ms:
        for member in members:
            if member.phase is Phase.DEAD:
                member.come_back()
            if coordinator.now_ms >= member.next_ms:
                member.act()
        coordinator.advance(200)


@pytest.mark.parametrize("seed", range(25))
def test_members_that_fail_leave_the_others_with_one_owner_for_each_partition(seed: int) -> None:
    random = Random(seed)
    coordinator = Coordinator()
    members = [
        Member(f"m{n}", coordinator, random, static=random.random() < 0.4, version=random.choice((0, 3, 5, 9)))
        for n in range(random.randrange(1, 6))
    ]
    coordinator.append_fails = lambda: random.random() < FAILED_APPENDS
    for _ in range(STEPS):
        step(random, coordinator, members)
        check_group(coordinator)
        check_owners(members)
        check_offsets(coordinator)
        check_fold(coordinator)
    settle(coordinator, members)
    group = group_of(coordinator)
    assert group is not None
    assert group.state is STABLE
    assert {member.member_id for member in members} == set(group.members)
    assert Counter(p for member in members for p in member.owned) == Counter(range(PARTITIONS))
    assert {member.generation for member in members} == {group.generation}

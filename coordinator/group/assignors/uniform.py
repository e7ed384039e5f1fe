"""The `uniform` assignor: members' numbers of partitions differ by at most one, and members keep as many as possible.

This module is for members with the same subscription; mixed.py is for different subscriptions. Source: Kafka's
UniformAssignor and UniformHomogeneousAssignmentBuilder (KIP-848). As in Kafka 4.3, racks are not considered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice

from coordinator.group.assignment import Assignment, GroupSpec
from coordinator.group.assignors.mixed import assign_mixed
from protocol.types import Uuid

TopicIdPartition = tuple[Uuid, int]


def assign_uniformly(spec: GroupSpec) -> Mapping[str, Assignment]:
    """Returns the target assignment of every member."""
    if not spec.members:
        return {}
    return _assign_alike(spec) if spec.homogeneous else assign_mixed(spec)


def _assign_alike(spec: GroupSpec) -> Mapping[str, Assignment]:
    """Trims each member to its quota, then gives the free partitions to the members below their quota, in order.

    Some members may have one partition more than the others. The first members that own an extra partition already keep
    it; the remaining extra partitions go to the last members, so that no partition moves without need.
    """
    topics = next(iter(spec.members.values())).topics
    free = _unowned(spec, topics)
    quota, places = divmod(sum(spec.partition_counts[topic_id] for topic_id in topics), len(spec.members))
    target: dict[str, Assignment] = {}
    hungry: list[tuple[str, int]] = []
    for members_left, (member_id, member) in zip(range(len(spec.members), 0, -1), spec.members.items(), strict=True):
        has_place = places > 0
        target[member_id], room = _trimmed(member.assigned, topics, quota + has_place, free)
        if room and has_place and members_left > places:  # the members after it can have all extra partitions
            room -= 1
            has_place = False
        if room:
            hungry.append((member_id, room))
        places -= has_place
    supply = iter(free)
    for member_id, room in hungry:
        target[member_id] = _joined(target[member_id], islice(supply, room))
    return target


def _unowned(spec: GroupSpec, topics: Collection[Uuid]) -> list[TopicIdPartition]:
    """Returns the partitions without an owner in the present target assignment."""
    free: list[TopicIdPartition] = []
    for topic_id in topics:
        owned = spec.owners.get(topic_id, {})
        free.extend((topic_id, index) for index in range(spec.partition_counts[topic_id]) if index not in owned)
    return free


def _trimmed(
    assigned: Assignment, topics: Collection[Uuid], quota: int, free: list[TopicIdPartition]
) -> tuple[Assignment, int]:
    """Returns the partitions that a member keeps, at most `quota`, and how many more it may get; adds the others to
    `free`."""
    retained: dict[Uuid, frozenset[int]] = {}
    for topic_id, partitions in assigned.items():
        if topic_id not in topics:
            continue
        if len(partitions) <= quota:
            retained[topic_id] = partitions
        else:
            ordered = sorted(partitions)
            free.extend((topic_id, index) for index in ordered[quota:])
            if quota:
                retained[topic_id] = frozenset(ordered[:quota])
        quota -= len(retained.get(topic_id, ()))
    return retained, quota


def _joined(assigned: Assignment, added: Collection[TopicIdPartition] | islice[TopicIdPartition]) -> Assignment:
    by_topic = {topic_id: set(partitions) for topic_id, partitions in assigned.items()}
    for topic_id, index in added:
        by_topic.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(partitions) for topic_id, partitions in by_topic.items()}

"""The `range` assignor: each member gets a range of neighbouring partitions of each of its topics.

Members with the same subscription, to topics with equal numbers of partitions, get the same partition numbers of all
topics, so that streams can be joined. The ranges depend only on the order of the members: static members first, by
instance id, because their order survives a restart. Source: Kafka's RangeAssignor (KIP-848).
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.assignment import Assignment, GroupSpec, MemberSpec
from protocol.types import Uuid


def assign_ranges(spec: GroupSpec) -> Mapping[str, Assignment]:
    """Returns every member's ranges; those of the first members have one partition more if the numbers don't divide
    evenly."""
    subscribers: dict[Uuid, list[str]] = {}
    assigned: dict[str, dict[Uuid, frozenset[int]]] = {}
    for member_id, member in sorted(spec.members.items(), key=_rank):
        assigned[member_id] = {}
        for topic_id in member.topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    for topic_id, members in subscribers.items():
        for member_id, run in zip(members, _runs(spec.partition_counts[topic_id], len(members)), strict=True):
            if run:
                assigned[member_id][topic_id] = frozenset(run)
    return assigned


def _rank(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id


def _runs(partitions: int, members: int) -> list[range]:
    quota, longer = divmod(partitions, members)
    ends = [quota * (index + 1) + min(index + 1, longer) for index in range(members)]
    return [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]

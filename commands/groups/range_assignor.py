"""The `range` assignor, which the leader of a classic group runs: members get neighbouring partitions of each topic
(org.apache.kafka.clients.consumer.RangeAssignor, without racks)."""

from __future__ import annotations

from collections.abc import Mapping

Assignments = dict[str, dict[str, list[int]]]
"""Partitions by topic, for each member."""


Subscriptions = Mapping[str, tuple[str | None, list[str]]]
"""Each member's instance id, if it is static, and its topics."""


def assign_by_range(subscriptions: Subscriptions, counts: Mapping[str, int]) -> Assignments:
    """Returns the partitions of each member; `counts` has the partition counts of existing topics. Static members come
    first, ordered by instance id, then the other members, ordered by member id."""
    assigned: Assignments = {member: {} for member in subscriptions}
    ranked = sorted(subscriptions, key=lambda member: _rank(member, subscriptions[member][0]))
    for topic in sorted({topic for _, topics in subscriptions.values() for topic in topics}):
        members = [member for member in ranked if topic in subscriptions[member][1]]
        quota, longer = divmod(counts.get(topic, 0), len(members))
        start = 0
        for number, member in enumerate(members):
            end = start + quota + (number < longer)
            if end > start:
                assigned[member][topic] = list(range(start, end))
            start = end
    return assigned


def _rank(member: str, instance: str | None) -> tuple[bool, str]:
    return instance is None, member if instance is None else instance

"""The target assignment: who shall come to own what, computed anew for a group epoch.

Source: Kafka's TargetAssignmentBuilder (KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from coordinator.cluster.topics.topic import Topic
from coordinator.group.assignment import NOTHING, Assignment, Assignor, GroupSpec, MemberSpec
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member
from protocol.types import Uuid


class TopicTable(Protocol):
    """Where a topic is found by its name."""

    def topic(self, name: str) -> Topic | None: ...


class Target(NamedTuple):
    """A member's target, and the group epoch it is for."""

    epoch: int
    assignment: Assignment


class TopicIds:
    """Ids of subscribed topics that exist, looked up once however many members name them."""

    def __init__(self, topics: TopicTable) -> None:
        self._topics = topics
        self._ids: dict[str, Uuid | None] = {}
        self._of_subscription: dict[frozenset[str], frozenset[Uuid]] = {}
        self.partition_counts: dict[Uuid, int] = {}

    def of(self, names: frozenset[str]) -> frozenset[Uuid]:
        """The ids of those of the names that are topics."""
        found = self._of_subscription.get(names)
        if found is None:
            ids = (self._id_of(name) for name in names)
            found = self._of_subscription[names] = frozenset(topic_id for topic_id in ids if topic_id is not None)
        return found

    def _id_of(self, name: str) -> Uuid | None:
        if name not in self._ids:
            topic = self._topics.topic(name)
            self._ids[name] = None if topic is None else topic.topic_id
            if topic is not None:
                self.partition_counts[topic.topic_id] = len(topic.partitions)
        return self._ids[name]


def assign(
    group: ConsumerGroup, changed: Member, alike: bool, assignor: Assignor, topics: TopicTable
) -> Mapping[str, Assignment]:
    """The new target of every member, once `changed` has joined or changed, or taken a static member's place."""
    members = dict(group.members)
    replaced = group.static_members.get(changed.instance_id) if changed.instance_id is not None else None
    if replaced is not None and replaced != changed.member_id:
        del members[replaced]
    members[changed.member_id] = changed
    heirs = {changed.member_id: replaced} if replaced is not None else {}
    ids = TopicIds(topics)
    specs = {
        member_id: MemberSpec(
            topics=ids.of(group.topics_of(member)),
            assigned=group.target(heirs.get(member_id, member_id)),
            instance_id=member.instance_id,
            rack_id=member.rack_id,
        )
        for member_id, member in members.items()
    }
    assigned = assignor(GroupSpec(specs, ids.partition_counts, alike, group.owners))
    return {member_id: assigned.get(member_id, NOTHING) for member_id in specs}


def differences(group: ConsumerGroup, targets: Mapping[str, Assignment]) -> Iterable[tuple[str, Assignment]]:
    """The targets that are other than they were."""
    return ((member_id, target) for member_id, target in targets.items() if group.targets.get(member_id) != target)

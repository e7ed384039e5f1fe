"""SimpleAssignor: assigns every partition to as many members as needed to keep all members busy, evenly.

With fewer members than partitions, each partition has one member; with more members, several members share each
partition. Members keep their partitions as far as the result stays even. Source: Kafka's SimpleAssignor,
SimpleHomogeneousAssignmentBuilder and SimpleHeterogeneousAssignmentBuilder (KIP-932).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coordinator.group.assignment import Assignment
from protocol.types import Uuid

NAME: Final = "simple"

TopicPartitionId = tuple[Uuid, int]


class Subscriber(NamedTuple):
    """A member: its subscription and its present assignment."""

    topics: Collection[Uuid]
    """Subscribed topics that exist."""
    assigned: Assignment


def assign(
    members: Mapping[str, Subscriber], assignable: Mapping[Uuid, Collection[int]], *, alike: bool
) -> dict[str, Assignment]:
    """Returns the partitions of `assignable` for each member; `alike` is True if all members subscribe to the same
    topics."""
    if not members:
        return {}
    if alike:
        topics = next(iter(members.values())).topics
        partitions = [(topic_id, index) for topic_id in topics for index in sorted(assignable.get(topic_id, ()))]
        spread = _Spread(list(members), partitions, {name: _owned(subscriber) for name, subscriber in members.items()})
        return {name: _assignment(given) for name, given in spread.run().items()}
    return _topic_by_topic(members, assignable)


def _topic_by_topic(
    members: Mapping[str, Subscriber], assignable: Mapping[Uuid, Collection[int]]
) -> dict[str, Assignment]:
    result: dict[str, set[TopicPartitionId]] = {name: set() for name in members}
    for topic_id in dict.fromkeys(topic_id for subscriber in members.values() for topic_id in subscriber.topics):
        names = [name for name, subscriber in members.items() if topic_id in subscriber.topics]
        partitions = [(topic_id, index) for index in sorted(assignable.get(topic_id, ()))]
        owned = {name: {(topic_id, index) for index in members[name].assigned.get(topic_id, ())} for name in names}
        for name, given in _Spread(names, partitions, owned).run().items():
            result[name] |= given
    return {name: _assignment(given) for name, given in result.items()}


def _owned(member: Subscriber) -> set[TopicPartitionId]:
    return {(topic_id, index) for topic_id, partitions in member.assigned.items() for index in partitions}


def _assignment(partitions: Collection[TopicPartitionId]) -> Assignment:
    result: dict[Uuid, set[int]] = {}
    for topic_id, index in sorted(partitions):
        result.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in result.items()}


class _Spread:
    """Assigns partitions to members that may all have any of them."""

    def __init__(
        self,
        names: Sequence[str],
        partitions: Sequence[TopicPartitionId],
        owned: Mapping[str, Collection[TopicPartitionId]],
    ) -> None:
        self.sharing = -(-len(names) // len(partitions)) if partitions else 0
        """The number of members for each partition."""
        places = self.sharing * len(partitions)
        self.quotas = {
            name: -(-places * (index + 1) // len(names)) - -(-places * index // len(names))
            for index, name in enumerate(names)
        }
        """The number of partitions for each member, as even as possible."""
        self.members: dict[TopicPartitionId, list[str]] = {partition: [] for partition in partitions}
        self.assigned: dict[str, list[TopicPartitionId]] = {name: [] for name in names}
        for name in names:
            for partition in sorted(owned[name]):
                if partition in self.members:
                    self.members[partition].append(name)
                    self.assigned[name].append(partition)

    def run(self) -> dict[str, set[TopicPartitionId]]:
        self._revoke_overfilled()
        self._revoke_overshared()
        self._fill()
        return {name: set(partitions) for name, partitions in self.assigned.items()}

    def _revoke_overfilled(self) -> None:
        for name, partitions in self.assigned.items():
            while len(partitions) > self.quotas[name]:
                self.members[partitions.pop(0)].remove(name)

    def _revoke_overshared(self) -> None:
        for partition, names in self.members.items():
            while len(names) > self.sharing:
                self.assigned[names.pop(0)].remove(partition)

    def _fill(self) -> None:
        """Assigns the remaining partitions to members below their quota, in turn."""
        unfilled = [name for name, partitions in self.assigned.items() if len(partitions) < self.quotas[name]]
        turn = 0
        for partition, names in self.members.items():
            for _ in range(self.sharing - len(names)):
                position = self._next(unfilled, turn, names)
                if position is None:
                    break
                name = unfilled[position]
                names.append(name)
                self.assigned[name].append(partition)
                turn = position + 1
                if len(self.assigned[name]) >= self.quotas[name]:
                    del unfilled[position]
                    turn = position

    @staticmethod
    def _next(unfilled: Sequence[str], turn: int, names: Collection[str]) -> int | None:
        """Returns the index of the next member without the partition; None if all members have it."""
        count = len(unfilled)
        candidates: Iterator[int] = ((turn + step) % count for step in range(count))
        return next((index for index in candidates if unfilled[index] not in names), None)

"""The `uniform` assignor for members with different subscriptions: as even as their topics allow, with few moves.

Members keep their partitions of topics that they still subscribe to. Free partitions go, topic by topic, to the topic's
least loaded subscribers; then partitions move from its most to its least loaded subscribers while that reduces the
difference, over all topics until a round changes nothing. Topics with the most partitions per subscriber come first, so
that the later topics can even out the loads. Source: Kafka's UniformHeterogeneousAssignmentBuilder (KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator.group.assignment import Assignment, GroupSpec
from protocol.types import Uuid

MAX_ROUNDS: Final = 16
"""Maximum number of rounds, because topics may repeatedly unbalance each other; as in Kafka."""

NOBODY: Final = -1


def assign_mixed(spec: GroupSpec) -> Mapping[str, Assignment]:
    """Returns the target assignment of every member."""
    plan = _Plan(spec)
    plan.hand_out()
    plan.balance()
    return plan.assignment()


class _Plan:
    """The owners of partitions while they are decided. A member's number is its position in the spec."""

    def __init__(self, spec: GroupSpec) -> None:
        self._member_ids = list(spec.members)
        self._subscribers: dict[Uuid, list[int]] = {}
        for number, member in enumerate(spec.members.values()):
            for topic_id in member.topics:
                self._subscribers.setdefault(topic_id, []).append(number)
        self._owners = {topic_id: [NOBODY] * spec.partition_counts[topic_id] for topic_id in self._subscribers}
        self._loads = [0] * len(self._member_ids)
        for number, member in enumerate(spec.members.values()):
            for topic_id, partitions in member.assigned.items():
                if topic_id in member.topics:
                    self._keep(number, topic_id, partitions)
        self._topics = sorted(self._subscribers, key=self._rank)

    def _keep(self, number: int, topic_id: Uuid, partitions: Iterable[int]) -> None:
        owners = self._owners[topic_id]
        for index in partitions:
            owners[index] = number
            self._loads[number] += 1

    def _rank(self, topic_id: Uuid) -> tuple[float, int, tuple[int, int]]:
        partitions, subscribers = len(self._owners[topic_id]), len(self._subscribers[topic_id])
        return -partitions / subscribers, subscribers, _signed(topic_id)

    def hand_out(self) -> None:
        """Gives every free partition to the least loaded subscriber of its topic."""
        for topic_id in self._topics:
            owners = self._owners[topic_id]
            free = [index for index, owner in enumerate(owners) if owner == NOBODY]
            if free:
                ladder = _Ladder(self._subscribers[topic_id], self._loads)
                for index in free:
                    owners[index] = ladder.next_least()
                    self._loads[owners[index]] += 1

    def balance(self) -> None:
        """Moves partitions within topics until no topic can be evened out further."""
        shared = [topic_id for topic_id in self._topics if len(self._subscribers[topic_id]) > 1]
        last_changed: Uuid | None = None
        for _ in range(MAX_ROUNDS):
            for topic_id in shared:
                if topic_id == last_changed:  # a whole round without a change
                    return
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id

    def _balance_topic(self, topic_id: Uuid) -> bool:
        """Moves partitions of a topic. Returns True if any moved."""
        ladder = _Ladder(self._subscribers[topic_id], self._loads)
        if ladder.spread <= 1:
            return False
        owners = self._owners[topic_id]
        owned: dict[int, list[int]] = {}
        for index, owner in enumerate(owners):
            owned.setdefault(owner, []).append(index)
        moved = False
        while (giver := ladder.next_most(owned)) != NOBODY:
            index = owned[giver].pop()
            taker = ladder.next_least()
            if ladder.balanced:
                break
            owners[index] = taker
            self._loads[giver] -= 1
            self._loads[taker] += 1
            moved = True
        return moved

    def assignment(self) -> dict[str, Assignment]:
        """Returns the partitions of each member."""
        by_member: list[dict[Uuid, set[int]]] = [{} for _ in self._member_ids]
        for topic_id, owners in self._owners.items():
            for index, owner in enumerate(owners):
                by_member[owner].setdefault(topic_id, set()).add(index)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
            for member_id, topics in zip(self._member_ids, by_member, strict=True)
        }


class _Ladder:
    """One topic's subscribers by load, from both ends.

    The members with the lowest load form a range at the start; each of them is returned once, and gets one partition.
    Then the range's load is one higher, and members that have that load already join it. The members with the highest
    loads form a range at the end, which moves down in the same way.
    """

    def __init__(self, subscribers: list[int], loads: list[int]) -> None:
        self._loads = loads
        self._members = members = sorted(subscribers, key=lambda number: (loads[number], number))
        self.spread = loads[members[-1]] - loads[members[0]]
        self._low_end = self._next_low = 0
        self._low_load = loads[members[0]] - 1
        self._high_start = self._high_end = len(members)
        self._high_load = loads[members[-1]] + 1
        self._next_high = len(members) - 1

    @property
    def balanced(self) -> bool:
        """True if the two ranges are so close that moving a partition evens nothing out."""
        return self._high_load - self._low_load <= 1

    def next_least(self) -> int:
        """Returns the subscriber that gets the next partition."""
        members = self._members
        if self._next_low >= self._low_end:
            self._low_load += 1
            while self._low_end < len(members) and self._loads[members[self._low_end]] == self._low_load:
                self._low_end += 1
            self._next_low = 0
        self._next_low += 1
        return members[self._next_low - 1]

    def next_most(self, owned: Mapping[int, list[int]]) -> int:
        """Returns the subscriber that gives up one of its partitions in `owned`; NOBODY if none is left, or the loads
        are balanced."""
        while not self.balanced:
            giver = self._step_down()
            if giver == NOBODY or owned.get(giver):
                return giver
            self._exclude_last()
        return NOBODY

    def _step_down(self) -> int:
        members = self._members
        if self._next_high < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high_load = self._loads[members[self._high_start - 1]]
            else:
                self._high_load -= 1
            while self._high_start > 0 and self._loads[members[self._high_start - 1]] == self._high_load:
                self._high_start -= 1
            self._next_high = self._high_end - 1
        if self._next_high < 0:
            return NOBODY
        self._next_high -= 1
        return members[self._next_high + 1]

    def _exclude_last(self) -> None:
        """Removes the member just returned from the range of the highest loads: it has no partition of this topic to
        give up."""
        members, named = self._members, self._next_high + 1
        last = self._high_end - 1
        members[named], members[last] = members[last], members[named]
        self._high_end = last


def _signed(topic_id: Uuid) -> tuple[int, int]:
    """Returns a UUID's sort key in the order of Kafka's Uuid.compareTo: two signed longs."""
    return int.from_bytes(topic_id[:8], "big", signed=True), int.from_bytes(topic_id[8:], "big", signed=True)

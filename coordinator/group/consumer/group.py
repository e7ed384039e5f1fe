"""A consumer group: its epochs, members and target assignment, as in its records.

    Empty        no members
    Assigning    the group's epoch is ahead of its target assignment
    Reconciling  some member does not yet have its whole target assignment
    Stable       all members have theirs

Only replay changes it, record by record. Source: Kafka's ConsumerGroup (KIP-848).
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.consumer import records
from coordinator.group.consumer.commits import check_epoch, commit_check
from coordinator.group.consumer.member import Member, Owned
from coordinator.group.consumer.subscriptions import Subscriptions
from coordinator.group.group import CommitCheck, GroupType, any_partition
from coordinator.group.modern.group import NO_EPOCH
from coordinator.group.modern.static_members import StaticGroup
from coordinator.group.offsets.offsets import Offset
from coordinator.group.records import GroupRecord
from coordinator.group.regex import Resolved
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.java_hash import hash_map_order
from protocol.types import Uuid


class ConsumerGroupState(Enum):
    """The state of a group, as Kafka prints it; Dead is reported for a group that doesn't exist."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroup(StaticGroup[Member, Assignment]):
    """A consumer group; some of its members may use the classic protocol."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.records = records.COMMON
        self.no_target = NOTHING
        self.owners: dict[Uuid, dict[int, str]] = {}
        """The target assignment's members by partition."""
        self.subscriptions = Subscriptions()
        self.resolved: dict[str, Resolved] = {}
        """The topics of the resolved patterns, by pattern."""
        self.assignors: Counter[str] = Counter()
        self.classic_members = 0
        self.classic_protocols: Counter[str] = Counter()
        """The number of members of the classic protocol that support each strategy."""
        self.has_partition_metadata = False
        """True if there is a record of Kafka 4.0 that must be deleted."""
        self._held: dict[Uuid, dict[int, int]] = {}
        """Partitions that a member owns or must give up, with that member's epoch."""

    def __repr__(self) -> str:
        return f"ConsumerGroup({self.group_id!r}, {self.state_name}, epoch {self.epoch}, {list(self.members)})"

    # What every group has (coordinator.group.group.Group).

    @property
    def type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def expires(self) -> bool:
        return True

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck:
        if generation_or_epoch < 0 and not self.members:
            return any_partition  # a consumer without group management, or an administrator
        if transactional and generation_or_epoch == NO_EPOCH and not member_id and instance_id is None:
            return any_partition  # a producer from before KIP-447 sends nothing about its group
        return commit_check(self.member(member_id), generation_or_epoch, version, transactional=transactional)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            check_epoch(self.member(member_id or ""), member_epoch)

    def check_offset_delete(self) -> None:
        """Raises nothing: OffsetDelete checks the subscriptions of each topic."""

    def retained_from_ms(self, offset: Offset) -> int | None:
        return offset.commit_timestamp_ms

    # Queries.

    def own_tombstones(self) -> list[GroupRecord]:
        return [
            *(records.regex_gone(self.group_id, pattern) for pattern in self.resolved),
            records.partition_metadata_gone(self.group_id),
        ]

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def is_held(self, topic_id: Uuid, partition: int) -> bool:
        """True if a member owns a partition, or has not yet given it up."""
        return partition in self._held.get(topic_id, {})

    def preferred_assignor(self, before: Member | None = None, after: Member | None = None) -> str | None:
        """Returns the assignor that most members request, once a member has changed; None if no member names one."""
        votes = Counter(self.assignors)
        _revote(votes, before, after)
        return max(hash_map_order(votes), key=votes.__getitem__, default=None)

    def topics_of(self, member: Member) -> frozenset[str]:
        """Returns the topics that a member subscribes to, with its pattern's topics if they are resolved."""
        resolved = self.resolved.get(member.regex or "")
        return member.topic_names | resolved.topics if resolved else member.topic_names

    # Changes by records.

    def put(self, member: Member) -> None:
        """Adds or updates a member."""
        before = self.members.get(member.member_id)
        self._swap(before, member)
        self.members[member.member_id] = member
        self.put_instance(before, member)

    def remove(self, member_id: str) -> None:
        """Removes a member."""
        member = self.members.pop(member_id)
        self._swap(member, None)
        self.remove_instance(member)

    def _swap(self, before: Member | None, after: Member | None) -> None:
        self.subscriptions.replace(before, after)
        _revote(self.assignors, before, after)
        if before is not None:
            self._let_go(before.assigned, before.member_epoch)
            self._let_go(before.pending_revocation, before.member_epoch)
            self.classic_members -= before.uses_classic_protocol
            self.classic_protocols.subtract({protocol.name for protocol in before.classic_protocols})
        if after is not None:
            self._hold(after.assigned, after.member_epoch)
            self._hold(after.pending_revocation, after.member_epoch)
            self.classic_members += after.uses_classic_protocol
            self.classic_protocols.update({protocol.name for protocol in after.classic_protocols})

    def _hold(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            self._held.setdefault(topic_id, {}).update(dict.fromkeys(partitions, epoch))

    def _let_go(self, owned: Owned, epoch: int) -> None:
        """Releases the partitions, except those that another member has taken since, at another epoch."""
        for topic_id, partitions in owned.items():
            held = self._held.get(topic_id, {})
            for index in partitions:
                if held.get(index) == epoch:
                    del held[index]
            if not held:
                self._held.pop(topic_id, None)

    def put_target(self, member_id: str, assignment: Assignment) -> None:
        """Sets a member's target."""
        self._disown(member_id)
        self.targets[member_id] = assignment
        for topic_id, partitions in assignment.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def remove_target(self, member_id: str) -> None:
        """Removes a member's target."""
        self._disown(member_id)
        self.targets.pop(member_id, None)

    def _disown(self, member_id: str) -> None:
        """Removes the member as owner of its target's partitions, except those that are in another member's target by
        now."""
        for topic_id, partitions in self.target(member_id).items():
            owners = self.owners.get(topic_id, {})
            for index in partitions:
                if owners.get(index) == member_id:
                    del owners[index]
            if not owners:
                self.owners.pop(topic_id, None)

    def put_resolved(self, pattern: str, resolved: Resolved | None) -> None:
        """Sets a pattern's topics; None if no member subscribes with it."""
        before = self.resolved.pop(pattern, None)
        self.subscriptions.resolve(before.topics if before else (), resolved.topics if resolved else ())
        if resolved is not None:
            self.resolved[pattern] = resolved


def _revote(votes: Counter[str], before: Member | None, after: Member | None) -> None:
    """Updates the votes, which have no zeros, like the counts in Subscriptions."""
    if before is not None and before.server_assignor is not None:
        votes[before.server_assignor] -= 1
        if votes[before.server_assignor] <= 0:
            del votes[before.server_assignor]
    if after is not None and after.server_assignor is not None:
        votes[after.server_assignor] += 1

"""A classic group: its leader assigns the partitions, and the broker only coordinates the rebalances.

Its stored part (generation, strategy, leader, members with their assignments) is the content of its last record, and
only replay changes it. The rest is the rendezvous of its members: it is only in this broker's memory, and only effects
change it. Source: org.apache.kafka.coordinator.group.classic.ClassicGroup.
"""

from __future__ import annotations

from typing import Self

from coordinator.group.classic.rendezvous import COMPLETING_REBALANCE, EMPTY, STABLE, Rendezvous
from coordinator.group.classic.stored import NOTHING_STORED
from coordinator.group.group import CommitCheck, GroupType, any_partition
from coordinator.group.offsets.offsets import Offset
from coordinator.group.records import NO_TIMESTAMP, GroupRecord, classic_group_gone
from coordinator.group.timers import Timers
from protocol.errors import ErrorCode, KafkaError


class ClassicGroup(Rendezvous):
    """A classic group; a group that only has offsets ("simple") has no protocol type and no members."""

    def __init__(self, group_id: str, since_ms: int = NO_TIMESTAMP) -> None:
        super().__init__(group_id, since_ms=since_ms)
        self.stored = NOTHING_STORED
        """The group as in its last record."""

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id!r}, {self.state_name}, generation {self.generation}, {list(self.members)})"

    def take(self, fork: Self) -> None:
        """Takes over the changes of a fork, except the record's content, which replay has already set."""
        stored = self.stored
        super().take(fork)
        self.stored = stored

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def expires(self) -> bool:
        return True

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck:
        if generation_or_epoch < 0 and self.state is EMPTY:
            return any_partition  # a consumer without group management, or an administrator
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation_or_epoch != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)  # the group has members: only they may commit
        if not transactional and self.state is COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return any_partition

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allows every client to fetch."""

    def check_offset_delete(self) -> None:
        if self.state is not EMPTY and not self.is_of_consumers:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if self.state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def retained_from_ms(self, offset: Offset) -> int | None:
        if self.protocol is None:
            return offset.commit_timestamp_ms
        if self.state is EMPTY:
            return offset.commit_timestamp_ms if self.since_ms == NO_TIMESTAMP else self.since_ms
        if self.is_of_consumers and self.subscribed_topics is not None and self.state is STABLE:
            return offset.commit_timestamp_ms
        return None

    def tombstones(self) -> list[GroupRecord]:
        return [classic_group_gone(self.group_id)]

    def cancel_timers(self, timers: Timers) -> None:
        timers.cancel(join_key(self.group_id))
        timers.cancel(sync_key(self.group_id))
        for member_id in (*self.members, *self.pending_joins):
            timers.cancel(session_key(self.group_id, member_id))


def join_key(group_id: str) -> tuple[str, str]:
    """Returns the key of a rebalance's timer."""
    return "join", group_id


def sync_key(group_id: str) -> tuple[str, str]:
    """Returns the key of the timer of members that have not synced yet."""
    return "sync", group_id


def session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Returns the key of the timer of a member's session, or of a pending member."""
    return "session", group_id, member_id
